"""Every call that writes, each from a state it works in: what the fault tests run through a proxy."""

from typing import Any, Final

from broker import (
    Action,
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Interrupt,
    Mode,
    Reject,
    Respond,
)
from broker.core.answers import Answer

from .calls_of_fleets import FLEETS
from .calls_of_journals import JOURNALS
from .world import ADA, HOUR, SESSION, Call, World, approval, asked, dead, leased, nothing, ready, woken


def answer(given: Answer, *interrupts: Interrupt, mode: Mode = Mode.ALL) -> Call:
    async def prepare(w: World) -> None:
        await asked(w, *interrupts, mode=mode)

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


async def answer_without_record(w: World) -> Any:
    """A receipt is left for the id of a question that nobody asked."""
    return await w.faulty.inbox.answer(w.interrupt_id[:-4] + "0000", Approve(), by=ADA)


OFFERS: Final = ("approve", "edit", "reject")
COMPLETION: Final = Interrupt.completion(Action(tool="render", arguments={}), "job_1")
SCHEMA: Final = {"type": "integer"}


async def beating(w: World) -> None:
    """A job has to tell that it runs."""
    await asked(w, Interrupt.completion(Action(tool="render", arguments={}), "job_1", heartbeat=HOUR))


async def answered_early(w: World) -> None:
    """An answer waits for a question that has a schema: it is looked at before the pause takes it."""
    await w.sound.inbox.answer_call(SESSION, "call_1", Respond(payload=1), by=ADA)


CALLS: Final[dict[str, Call]] = {
    "start": Call("start", nothing, lambda w: w.faulty.start("a", {"n": 1}, session=SESSION)),
    "start under a key": Call("start", nothing, lambda w: w.faulty.start("a", {"n": 1}, session=SESSION, key="k")),
    "adopt": Call("adopt", nothing, adopt),
    "suspend": Call("suspend", nothing, lambda w: w.faulty.suspend("a", approval(), session=SESSION)),
    "suspend instead": Call(
        "suspend", asked,
        lambda w: w.faulty.suspend("a", approval(2), session=SESSION, run_id=w.run_id, seq=2, replace=True),
    ),
    "suspend what was answered": Call(
        "suspend", answered_early,
        lambda w: w.faulty.suspend(
            "a", Interrupt(call_id="call_1", response_schema=SCHEMA), session=SESSION, key="k"
        ),
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
    "approve one of two": answer(Approve(), approval(1, "a"), approval(2, "b"), mode=Mode.FIRST),
    "reject": answer(Reject(reason="no")),
    "cancel": answer(Cancel(reason="nobody")),
    "edit": answer(Edit(arguments={"n": 2}), approval(offers=OFFERS)),
    "respond": answer(Respond(payload=[1]), Interrupt(payload="?")),
    "complete": answer(Complete(value=1), COMPLETION),
    "fail": answer(Fail(error="no"), COMPLETION),
    "heartbeat": Call("heartbeat", beating, lambda w: w.faulty.heartbeat(w.interrupt_id)),
    "answer by call": Call(
        "answer", asked, lambda w: w.faulty.inbox.answer_call(SESSION, "call_1", Approve(), by=ADA)
    ),
    "answer before the question": Call(
        "answer", nothing, lambda w: w.faulty.inbox.answer_call(SESSION, "call_1", Approve(), by=ADA),
        ("parked", "replayed"),
    ),
    "answer to nothing": Call("answer", asked, answer_without_record, ("unknown",)),
    "withdraw": Call("withdraw", asked, lambda w: w.faulty.runs.withdraw(w.run_id, by=ADA)),
    "move": Call("move", asked, lambda w: w.faulty.runs.move(w.run_id, "slow", by=ADA)),
    "say": Call("say", asked, lambda w: w.faulty.runs.say(w.run_id, {"n": 1}, op="m-1", by=ADA)),
    "requeue": Call("requeue", dead, lambda w: w.faulty.dead.requeue(w.run_id, by=ADA)),
    **JOURNALS,
    **FLEETS,
}  # fmt: skip

NEW_EACH_TIME: Final = {"start", "suspend", "adopt", "take", "lease", "hand", "renew", "seen"}
"""Calls that, made again as a whole, are another one: without a key, or about what is there only once."""
NEW_WORK: Final = {
    "start", "start under a key", "adopt", "suspend", "suspend instead", "suspend what was answered",
    "say",
}  # fmt: skip
"""Calls that a full server refuses."""
