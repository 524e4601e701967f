"""Every call of the API that writes, each from a state it works in: what the fault tests run through a proxy."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Cancel,
    Complete,
    Edit,
    Fail,
    Interrupt,
    Mode,
    Principal,
    Reject,
    Respond,
    Run,
)
from broker.core.answers import Answer

ADA: Final = Principal.local("ada")
SESSION: Final = "s"


@dataclass
class World:
    """The broker that is faulty, one that is not, and what was prepared."""

    faulty: AsyncBroker
    sound: AsyncBroker
    run_id: str = ""
    interrupt_id: str = ""
    run: Run[Any] | None = None

    @property
    def held(self) -> Run[Any]:
        assert self.run is not None
        return self.run


Step = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True)
class Call:
    """One call: the script it sends, how its world is prepared, the call itself."""

    script: str
    prepare: Step
    act: Step
    answers: tuple[str, ...] = ("accepted", "replayed")
    """What it is told without a fault, and what it may be told when its first reply was lost."""


def approval(n: int = 1, call: str = "call_1", **more: Any) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"n": n}), call, **more)


async def nothing(_: World) -> None:
    """An empty namespace."""


async def ready(w: World) -> None:
    w.run_id = (await w.sound.start("a", {"n": 1}, session=SESSION, key="k")).run_id


async def leased(w: World) -> None:
    await ready(w)
    (w.run,) = await w.faulty.queue("agents").lease(("a",))


async def asked(w: World, *interrupts: Interrupt, mode: Mode = Mode.ALL) -> None:
    paused = await w.sound.suspend("a", *(interrupts or (approval(),)), session=SESSION, key="k", mode=mode)
    w.run_id, w.interrupt_id = paused.run_id, paused.interrupt_ids[0]


async def dead(w: World) -> None:
    await ready(w)
    (run,) = await w.sound.queue("agents").lease(("a",))
    await run.fail("Hopeless", final=True)


async def woken(w: World) -> None:
    """Leased with one answer of two, mode each."""
    await asked(w, approval(1, "a"), approval(2, "b"), mode=Mode.EACH)
    await w.sound.inbox.answer(w.interrupt_id, Approve(), by=ADA)
    (w.run,) = await w.faulty.queue("agents").lease(("a",))


def answer(given: Answer, *interrupts: Interrupt) -> Call:
    async def prepare(w: World) -> None:
        await asked(w, *interrupts)

    return Call("answer", prepare, lambda w: w.faulty.inbox.answer(w.interrupt_id, given, by=ADA))


async def adopt(w: World) -> str:
    async with w.faulty.adopt("a", {"n": 1}, session=SESSION, key="k") as run:
        w.run_id = run.id
        await run.finish()
    return "accepted"


async def take(w: World) -> str:
    async with w.faulty.take(w.run_id) as run:
        assert run.fence == 1
        await run.finish()
    return "accepted"


async def lease(w: World) -> str:
    (run,) = await w.faulty.queue("agents").lease(("a",))
    return f"fence {run.fence} attempt {run.attempt}"


OFFERS: Final = ("approve", "edit", "reject")
COMPLETION: Final = Interrupt.completion(Action(tool="render", arguments={}), "job_1")

CALLS: Final[dict[str, Call]] = {
    "start": Call("start", nothing, lambda w: w.faulty.start("a", {"n": 1}, session=SESSION)),
    "start under a key": Call("start", nothing, lambda w: w.faulty.start("a", {"n": 1}, session=SESSION, key="k")),
    "adopt": Call("adopt", nothing, adopt),
    "suspend": Call("suspend", nothing, lambda w: w.faulty.suspend("a", approval(), session=SESSION)),
    "suspend instead": Call(
        "suspend", asked,
        lambda w: w.faulty.suspend("a", approval(2), session=SESSION, run_id=w.run_id, seq=2, replace=True),
    ),
    "take": Call("lease", ready, take),
    "lease": Call("lease", ready, lease, ("fence 1 attempt 1",)),
    "run.suspend": Call("suspend", leased, lambda w: w.held.suspend(approval(), approval(2, "call_2"))),
    "run.finish": Call("finish", leased, lambda w: w.held.finish({"n": 1}), ("finished",)),
    "run.finish, more to come": Call("finish", woken, lambda w: w.held.finish(), ("waiting",)),
    "run.release": Call("release", leased, lambda w: w.held.release(), ("None",)),
    "run.fail": Call("fail", leased, lambda w: w.held.fail("Bad", "luck"), ("ready",)),
    "run.fail for good": Call("fail", leased, lambda w: w.held.fail("Bad", final=True), ("dead",)),
    "approve": answer(Approve()),
    "reject": answer(Reject(reason="no")),
    "cancel": answer(Cancel(reason="nobody")),
    "edit": answer(Edit(arguments={"n": 2}), approval(offers=OFFERS)),
    "respond": answer(Respond(payload=[1]), Interrupt(payload="?")),
    "complete": answer(Complete(value=1), COMPLETION),
    "fail": answer(Fail(error="no"), COMPLETION),
    "answer by call": Call(
        "answer", asked, lambda w: w.faulty.inbox.answer_call(SESSION, "call_1", Approve(), by=ADA)
    ),
    "answer before the question": Call(
        "answer", nothing, lambda w: w.faulty.inbox.answer_call(SESSION, "call_1", Approve(), by=ADA),
        ("parked", "replayed"),
    ),
    "withdraw": Call("withdraw", asked, lambda w: w.faulty.runs.withdraw(w.run_id, by=ADA)),
    "move": Call("move", asked, lambda w: w.faulty.runs.move(w.run_id, "slow", by=ADA)),
    "requeue": Call("requeue", dead, lambda w: w.faulty.dead.requeue(w.run_id, by=ADA)),
}  # fmt: skip


def told(result: Any) -> str:
    """What a call came to, as one word."""
    return str(getattr(result, "code", None) or getattr(result, "value", None) or result)
