"""A gateway with a stream of events that has no end: `python -m tests.gateway.streaming --port N`."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator

from sse_starlette import EventSourceResponse

from broker import AsyncBroker
from broker.gateway import GatewaySettings, create_app
from broker.gateway.identity import PUBLIC, needs
from broker.gateway.server import serve


async def main(port: int) -> None:
    async with AsyncBroker(namespace=os.environ["BROKER_NAMESPACE"]) as broker:
        app = create_app(broker, settings=GatewaySettings(notice_seconds=0.2, drain_seconds=30))

        async def events() -> AsyncGenerator[str]:
            yield "begun"
            await asyncio.Event().wait()

        @app.get("/endless")
        @needs(PUBLIC)
        async def endless() -> EventSourceResponse:
            return EventSourceResponse(events())

        await serve(app, "127.0.0.1", port)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[-1])))
