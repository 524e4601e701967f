"""A journal whose server goes away: nobody knows what is recorded, so nothing is made of it."""

import pytest

from broker import AsyncBroker, Principal, RunState, Unavailable
from broker.testing import FaultProxy, RunningServer


async def test_what_a_handler_makes_of_a_lost_server_is_no_result(
    server: RunningServer, proxy: FaultProxy, namespace: str
) -> None:
    """`except Exception: tell the model` around a call whose record nobody knows; the server is back right after."""
    ran: list[str] = []

    async def search(text: str) -> str:
        ran.append(text)
        return "found"

    me = Principal.local("me")
    async with (
        AsyncBroker(server.url, namespace=namespace, by=me) as broker,
        AsyncBroker(proxy.url, namespace=namespace, by=me, patience=0.3) as shaky,
    ):
        run_id = (await broker.start("airline", session="s")).run_id
        async with shaky.take(run_id) as run:
            proxy.refuse()
            with pytest.raises(Unavailable):
                await run.call(search, {"text": "x"}, call_id="c1")
            proxy.restore()
            with pytest.raises(Unavailable):
                await run.finish("it went well")
        found = await broker.runs.get(run_id)
        assert (found.state, found.result, ran) == (RunState.READY, None, [])
