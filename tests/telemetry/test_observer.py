"""An observer is told of every script call of a process, before and after, and never what was said in it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Interrupt,
    Principal,
    Reject,
    Settings,
    StaleLease,
    Unavailable,
)  # fmt: skip
from broker.store import scripts
from broker.store.commands.runs import release
from broker.telemetry import CATALOGUE, Observation, Silent
from broker.testing import FaultProxy, RunningServer, await_until

CANARY = "canary-4711"


class Watcher(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[Observation] = []
        self.ended: list[Observation] = []

    def sent(self, calls: Sequence[Observation], /) -> None:
        self.begun += calls

    def told(self, calls: Sequence[Observation], /) -> None:
        self.ended += calls

    def of(self, op: str) -> list[Observation]:
        return [one for one in self.ended if one.op == op]


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def broker(server: RunningServer, namespace: str, watcher: Watcher) -> Callable[[], AsyncBroker]:
    def make(url: str = server.url, patience: float = 10) -> AsyncBroker:
        return AsyncBroker(
            url, namespace=namespace, by=Principal.local("me"), observer=watcher, patience=patience
        )

    return make


def test_the_catalogue_names_every_script() -> None:
    assert tuple(sorted(CATALOGUE)) == scripts.names()


async def test_a_life_is_told_with_its_ids_and_fences(
    broker: Callable[[], AsyncBroker], watcher: Watcher
) -> None:
    async with broker() as b:
        run_id = (await b.start("a", {"q": CANARY}, session="s", key="k")).run_id
        (run,) = await b.queue("agents").lease(("a",))
        paused = await run.suspend(Interrupt.approval(Action(tool="t", arguments={"x": CANARY}), "c"))
        (interrupt,) = paused.interrupt_ids
        assert isinstance(await b.inbox.answer(interrupt, Approve(note=CANARY), op="first"), Accepted)
        assert isinstance(await b.inbox.answer(interrupt, Reject(reason=CANARY), op="second"), AlreadyDecided)
        async with b.take(run_id or "") as again:
            await again.finish({"r": CANARY})
        with pytest.raises(StaleLease):
            await again._link.run(release(again._leased))
    facts = [
        (one.op, one.run_id == run_id, one.operation_id, one.fence, one.outcome, one.winner)
        for one in watcher.ended
        if one.session_id == "s"
    ]
    assert facts == [
        ("start", True, facts[0][2], None, "accepted", None),
        ("lease", True, "lease-1", 1, "leased", None),
        ("suspend", True, facts[2][2], 1, "accepted", None),
        ("answer", True, "first", None, "accepted", None),
        ("answer", True, "second", None, "already_decided", "first"),
        ("lease", True, "lease-2", 2, "leased", None),
        ("finish", True, "finish-2", 2, "finished", None),
        ("release", True, "release-2", 2, "stale_lease", None),
    ]
    assert watcher.of("suspend")[0].interrupt_ids == watcher.of("answer")[0].interrupt_ids == (interrupt,)
    assert CANARY not in repr((watcher.begun, watcher.ended))


async def test_each_call_is_told_before_and_after(
    broker: Callable[[], AsyncBroker], watcher: Watcher
) -> None:
    async with broker() as b:
        await b.start("a", session="s")
    assert [one.number for one in watcher.begun] == [one.number for one in watcher.ended]
    assert all(one.t_return is None and one.outcome is None and one.error is None for one in watcher.begun)
    assert all(one.t_return is not None and one.t_call <= one.t_return for one in watcher.ended)


async def test_renewals_are_told_from_their_thread(
    server: RunningServer, namespace: str, watcher: Watcher
) -> None:
    settings = Settings(lease=timedelta(seconds=0.4))
    async with AsyncBroker(server.url, namespace=namespace, observer=watcher, settings=settings) as b:
        run_id = (await b.start("a", session="s")).run_id
        async with b.take(run_id or ""):
            await await_until(lambda: watcher.of("renew"))
    renewal = watcher.of("renew")[0]
    assert (renewal.run_id, renewal.fence, renewal.outcome) == (run_id, 1, "done")


async def test_a_call_without_a_reply_is_unsure(
    broker: Callable[..., AsyncBroker], watcher: Watcher, proxy: FaultProxy
) -> None:
    b = broker(proxy.url, 0.5)
    await b.open()
    proxy.hang()
    task = asyncio.create_task(b.start("a", session="s"))
    await await_until(lambda: [one for one in watcher.begun if one.op == "start"])
    proxy.refuse()
    with pytest.raises(Unavailable):
        await task
    assert [(one.op, one.outcome, one.error) for one in watcher.ended[-1:]] == [("start", None, "unsure")]
    proxy.restore()
    await b.aclose()


async def test_a_cancelled_call_is_told_as_such(
    broker: Callable[..., AsyncBroker], watcher: Watcher, proxy: FaultProxy
) -> None:
    b = broker(proxy.url, 0.5)
    await b.open()
    proxy.hang()
    task = asyncio.create_task(b.start("a", session="s"))
    await await_until(lambda: [one for one in watcher.begun if one.op == "start"])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watcher.of("start")[0].error == "cancelled"
    proxy.restore()
    await b.aclose()
