"""One call of every kind whose outcome waits for the class of its namespace, each on a run of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from broker import Action, Approve, AsyncBroker, Interrupt, Principal, Reject, Settings
from broker.core.durability import Durability
from broker.core.limits import LIMITS
from broker.store.commands import entries, runs
from broker.store.commands.entries import Entry

ANN, BOB = Principal.local("ann"), Principal.local("bob")
FSYNCED: Final = Durability.fsynced()
SETTINGS: Final = Settings(
    durability=FSYNCED, confirm_within=timedelta(seconds=20), lease=timedelta(minutes=5), tries=1
)

Call = Callable[[], Awaitable[Any]]
Making = Callable[["Stage"], Coroutine[Any, Any, Call]]


def approval(call: str = "c1") -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"amount": 40}), call)


@dataclass(frozen=True, slots=True)
class Stage:
    """A broker at class fsynced, and the name of the session of one call."""

    broker: AsyncBroker
    session: str

    async def paused(self) -> tuple[str, str]:
        """Ids of a run that waits, and of its question."""
        told = await self.broker.suspend("airline", approval(), session=self.session, key="k")
        return told.run_id, told.interrupt_ids[0]

    async def leased(self) -> runs.Leased:
        """A lease on a new run."""
        started = await self.broker.start("airline", session=self.session, queue=self.session)
        (run,) = await self.broker.queue(self.session).lease(("airline",))
        assert run.id == started.run_id
        return run._leased

    async def begun(self, *, long: bool = False) -> runs.Leased:
        """A lease on a run in whose journal an entry was begun."""
        leased = await self.leased()
        await self.broker._link.run(entries.begin(leased, Entry("e", "d", "d", long=long, token="t"), LIMITS))
        return leased


async def start(at: Stage) -> Call:
    return lambda: at.broker.start("airline", session=at.session, key="k")


async def start_again(at: Stage) -> Call:
    await (await start(at))()
    return await start(at)


async def adopt(at: Stage) -> Call:
    async def call() -> None:
        async with at.broker.adopt("airline", session=at.session) as run:
            await run.release()

    return call


async def suspend(at: Stage) -> Call:
    return lambda: at.broker.suspend("airline", approval(), session=at.session, key="k")


async def suspend_leased(at: Stage) -> Call:
    await at.broker.start("airline", session=at.session, queue=at.session)
    (run,) = await at.broker.queue(at.session).lease(("airline",))
    return lambda: run.suspend(approval())


async def answer(at: Stage) -> Call:
    _, interrupt = await at.paused()
    return lambda: at.broker.inbox.answer(interrupt, Approve(), by=ANN)


async def answer_again(at: Stage) -> Call:
    call = await answer(at)
    await call()
    return call


async def answer_too_late(at: Stage) -> Call:
    _, interrupt = await at.paused()
    await at.broker.inbox.answer(interrupt, Approve(), by=ANN)
    return lambda: at.broker.inbox.answer(interrupt, Reject(reason="no"), by=BOB)


async def answer_early(at: Stage) -> Call:
    return lambda: at.broker.inbox.answer_call(at.session, "c1", Approve(), by=ANN)


async def answer_nothing(at: Stage) -> Call:
    _, interrupt = await at.paused()
    return lambda: at.broker.inbox.answer(interrupt[:-4] + "0000", Approve(), by=ANN)


async def withdraw(at: Stage) -> Call:
    run, _ = await at.paused()
    return lambda: at.broker.runs.withdraw(run, by=ANN)


async def move(at: Stage) -> Call:
    run, _ = await at.paused()
    return lambda: at.broker.runs.move(run, "elsewhere", by=ANN)


async def requeue(at: Stage) -> Call:
    leased = await at.leased()
    await at.broker._link.run(runs.fail(leased, pause=timedelta(), final=True, kind="k", text=""))
    return lambda: at.broker.dead.requeue(leased.token.run, by=ANN)


async def finish(at: Stage) -> Call:
    leased = await at.leased()
    return lambda: at.broker._link.run(runs.finish(leased, by=b"", result=b"r"))


async def begin_gated(at: Stage) -> Call:
    leased = await at.leased()
    return lambda: at.broker._link.run(entries.begin(leased, Entry("e", "d", "d", gated=True), LIMITS))


async def begin_long(at: Stage) -> Call:
    leased = await at.leased()
    return lambda: at.broker._link.run(
        entries.begin(leased, Entry("e", "d", "d", long=True, token="t"), LIMITS)
    )


async def begin_approved_again(at: Stage) -> Call:
    """Somebody was asked whether a call that may have run shall run again, and said yes."""
    leased = await at.begun()
    entry = Entry("e", "d", "d", again=True, approved=True)
    return lambda: at.broker._link.run(entries.begin(leased, entry, LIMITS))


async def end(at: Stage) -> Call:
    leased = await at.begun()
    return lambda: at.broker._link.run(entries.end(leased, "e", b"r"))


async def handle(at: Stage) -> Call:
    leased = await at.begun(long=True)
    return lambda: at.broker._link.run(entries.handle(leased, "e", "job-1"))


CALLS: Final[tuple[Making, ...]] = (
    start, start_again, adopt, suspend, suspend_leased, answer, answer_again, answer_too_late, answer_early,
    answer_nothing, withdraw, move, requeue, finish, begin_gated, begin_long,
    begin_approved_again, end, handle,
)  # fmt: skip


async def made(broker: AsyncBroker) -> dict[str, Call]:
    """Every call by its name, ready to be made."""
    stages = [Stage(broker, making.__name__) for making in CALLS]
    calls = await asyncio.gather(*(making(at) for making, at in zip(CALLS, stages, strict=True)))
    return {at.session: call for at, call in zip(stages, calls, strict=True)}
