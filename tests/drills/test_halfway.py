"""R04: who answers and who sweeps is killed between any two calls to the server, and others bring it to its end.

The reply to the n-th command is lost and its connection stays silent: the server did it, and the process does nothing
more. So each n is the moment between two calls. (Workers: tests/journal/test_boundaries.py.)
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from broker import Action, Approve, AsyncBroker, Interrupt, Settlement, UnknownId
from broker._async.link import Link
from broker.store.commands.values import Call, Came
from broker.store.keys import Pool
from broker.telemetry import Observation, Silent
from broker.testing import FaultProxy, RunningServer, await_until
from broker.worker.sweeper import Sweeper
from tests.clock import MOVABLE, Clock
from tests.worker.fleet import Agents

from .agents import halfway
from .asking import all_over, each, open_questions, start_all
from .crew import SETTINGS
from .ledger import Ledger
from .sizes import Size

pytestmark = pytest.mark.drill
Connect = Callable[..., Any]
FEW = 10
"""An answerer and a sweeper make more calls than that."""


def refund(call: str = "c", **more: Any) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={}), call, **more)


@pytest.fixture
async def connect(
    server: RunningServer, new_namespace: Callable[[], str]
) -> AsyncGenerator[Callable[..., Any]]:
    """A broker of a new namespace at each call."""
    async with AsyncExitStack() as stack:

        async def connected(**more: Any) -> AsyncBroker:
            broker = AsyncBroker(
                server.url, namespace=new_namespace(), settings=SETTINGS, by=halfway.ADA, **more
            )
            return await stack.enter_async_context(broker)

        yield connected


async def killed(server: RunningServer, after: int, target: Any, *args: Any) -> int:
    """Kills a process when the server has done so many of its commands; how many it sent."""
    with FaultProxy(server.url) as proxy:
        if after:
            proxy.drop_next_reply(nth=after, then="silence")
        process = halfway.forked(target, proxy.url, *args)
        await await_until(lambda: proxy.dropped or process.exitcode is not None, 30)
        assert process.exitcode in (None, 0)
        process.kill()
        process.join()
        return proxy.requests


def moments(steps: int, size: Size) -> range:
    """Every moment, or every second one from one of the first two on."""
    return range(random.choice(size((1, 2), (1,))), steps + 1, size(2, 1))


async def asked(broker: AsyncBroker) -> list[str]:
    return [(await broker.suspend("a", refund(), session=s)).interrupt_ids[0] for s in ("s0", "s1")]


async def test_R04_an_answerer_killed_between_any_two_calls_loses_and_doubles_nothing(
    server: RunningServer, connect: Connect, size: Size
) -> None:
    """Off: `_claim` of follow.py: what the dead one had in its hands is open for ever."""
    whole = await connect()
    await asked(whole)
    steps = await killed(server, 0, halfway.answers, whole.namespace, 2)
    assert steps > FEW

    async def answered(after: int) -> None:
        broker = await connect()
        ids = await asked(broker)
        await killed(server, after, halfway.answers, broker.namespace, 2)
        others = halfway.forked(halfway.answers, server.url, broker.namespace, 3)
        for one in ids:
            assert (await broker.inbox.wait(one, 20)).state is Settlement.RESOLVED, after
        others.kill()
        others.join()
        assert len(await broker.queue("agents").lease(("a",), limit=5)) == 2, after
        for session in ("s0", "s1"):
            events = [entry.event for entry in await broker.history(session)]
            assert events == ["suspended", "resolved", "leased"], after

    await each(moments(steps, size), answered, at_once=8)


AGENTS = ("denied", "kept", "held", "failed", "ready")


class Due:
    """A namespace in which there is something of every kind for a sweeper to do."""

    def __init__(self, broker: AsyncBroker) -> None:
        self.broker = broker
        self.sweeper = Sweeper(broker)
        self.runs: dict[str, str] = {}
        self.questions: dict[str, str] = {}

    async def prepare(self, clock: Clock) -> None:
        broker, hour = self.broker, timedelta(hours=1)
        questions: dict[str, dict[str, Any]] = {"denied": {"expires_in": hour}, "kept": {"expires_in": None}}
        for name, more in questions.items():
            paused = await broker.suspend(name, refund(**more), session=name)
            self.runs[name], self.questions[name] = paused.run_id, paused.interrupt_ids[0]
        for name in ("closed", "held", "failed", "ready"):
            self.runs[name] = (await broker.start(name, session=name)).run_id
        (closed,) = await broker.queue("agents").lease(("closed",))
        await closed.finish()
        await broker.queue("agents").lease(("held",))
        (failed,) = await broker.queue("agents").lease(("failed",))
        await failed.fail("Bad")
        clock.advance(2 * hour)

    async def sweep(self) -> bool:
        """Sweeps, by another than the process that was killed; False while that has the right to."""
        return await self.sweeper.sweep(self.broker._link.space.partition(0))

    async def facts(self) -> dict[str, Any]:
        """What there is to see afterwards: the same, however often a sweeper died."""
        found: dict[str, Any] = {}
        for name, run_id in self.runs.items():
            try:
                run = await self.broker.runs.get(run_id)
                found[name] = (run.state, run.fence, len(run.errors))
            except UnknownId:
                found[name] = "gone"
            found[f"events of {name}"] = [entry.event for entry in await self.broker.history(name)]
        for name, question in self.questions.items():
            found[f"question of {name}"] = (await self.broker.inbox.get(question)).state
        return found

    async def leases(self) -> Counter[str]:
        """What there is to lease in the end: a lost lease is offered again after a short back-off, by another sweep."""
        leased: Counter[str] = Counter()

        async def all_but_what_is_kept() -> bool:
            await self.sweep()
            leased.update(run.agent for run in await self.broker.queue("agents").lease(AGENTS, limit=20))
            return len(leased) == len(AGENTS) - 1

        await await_until(all_but_what_is_kept, 20)
        await all_but_what_is_kept()
        return leased


async def test_R04_a_sweeper_killed_between_any_two_calls_leaves_the_rest_to_another(
    server: RunningServer, connect: Connect, size: Size
) -> None:
    """Off: the time to live of the right to sweep: the dead one would have it for ever."""

    async def swept(after: int) -> tuple[int, dict[str, Any]]:
        due = Due(await connect(rendering=MOVABLE))
        clock = Clock(server.url, due.broker.namespace)
        try:
            await due.prepare(clock)
        finally:
            clock.close()
        sent = await killed(server, after, halfway.sweeps, due.broker.namespace)
        if after:
            await await_until(due.sweep, 20, what="another sweeps")
        leased = await due.leases()
        return sent, {"leased": leased} | await due.facts()

    steps, expected = await swept(0)
    assert steps > FEW
    assert expected["leased"] == dict.fromkeys(("denied", "held", "failed", "ready"), 1)
    assert expected["closed"] == "gone"
    assert expected["question of denied"] is Settlement.EXPIRED

    async def swept_in_two(after: int) -> None:
        _, facts = await swept(after)
        assert facts == expected, after

    await each(moments(steps, size), swept_in_two, at_once=8)


class Rings(Silent):
    """Counts what rings the bells of ready runs again."""

    def __init__(self) -> None:
        self.count = 0

    def told(self, calls: Sequence[Observation], /) -> None:
        self.count += sum(one.op == "ring_ready" for one in calls)


def lose_bells(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this broker does, nobody who waits for it is known and woken."""
    idle = link.space.partition(0).key("idle", Pool("agents", "pays", ""))

    async def send(call: Call, *, whole: bool = False) -> Came:
        pipe = link.client.pipeline(transaction=True)
        pipe.execute_command("DEL", idle)
        pipe.execute_command(*call.words(whole=whole))
        _, reply = await pipe.execute(raise_on_error=False)
        if isinstance(reply, Exception):
            raise reply
        return Came(reply)

    monkeypatch.setattr(link.wire, "run", send)


async def test_R04_a_decision_whose_bell_is_lost_is_rung_for_again(
    broker: AsyncBroker, processes: Callable[..., Agents], tmp_path: Path, server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Off: `_ring_ready` of the sweeper: a worker would look by itself, half a minute later."""
    ledger, rings = Ledger(tmp_path / "ledger"), Rings()
    processes(program="tests.drills.agents.working", ledger=str(ledger.path), sweeps=False)
    runs = await start_all(broker, "pays", 8)
    ids = await open_questions(broker, len(runs))
    async with AsyncBroker(
        server.url, namespace=broker.namespace, settings=SETTINGS, observer=rings
    ) as sweeping:
        task = asyncio.create_task(Sweeper(sweeping).run())
        lose_bells(broker._link, monkeypatch)
        for one in ids:
            await broker.inbox.answer(one, Approve())
        await all_over(broker, runs)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert {(await broker.runs.get(run)).result for run in runs} == set(runs.values())
    assert ledger.doubled(set()) == []
    assert rings.count > 0
