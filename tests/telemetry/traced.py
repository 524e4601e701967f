"""One process of a traced story: `python -m tests.telemetry.traced worker|answer URL NAMESPACE SPANS [INTERRUPT]`.

It writes its spans to a file, a line each, with the SDK of OpenTelemetry and its own exporter. A worker ends after one
attempt.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from broker import Action, Approve, AsyncBroker, Interrupt, Principal, Run, Worker
from broker.telemetry.otel import OpenTelemetry

CANARY = "canary-4711"


def work(url: str, namespace: str, observer: OpenTelemetry) -> None:
    worker = Worker(url, namespace=namespace, observer=observer)

    @worker.agent("shop")
    async def shop(run: Run[Any]) -> str:
        worker.stop()
        if not run.resolutions:
            await run.suspend(Interrupt.approval(Action(tool="refund", arguments={"to": CANARY}), "c"))
        return CANARY

    worker.run()


async def answer(url: str, namespace: str, observer: OpenTelemetry, interrupt_id: str) -> None:
    async with AsyncBroker(url, namespace=namespace, observer=observer) as broker:
        await broker.inbox.answer(interrupt_id, Approve(note=CANARY), by=Principal.local("ada"))


def main(role: str, url: str, namespace: str, spans: str, *rest: str) -> None:
    with Path(spans).open("a", encoding="utf-8") as out:
        exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        observer = OpenTelemetry(tracer_provider=provider)
        if role == "worker":
            work(url, namespace, observer)
        else:
            asyncio.run(answer(url, namespace, observer, *rest))
        provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
