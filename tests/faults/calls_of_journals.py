"""What a journal writes, driven through `run.step`, `run.calls` and `run.checkpoint`."""

from collections.abc import Callable
from typing import Any, Final

from broker import Approve, Paused, Pending, Run, current_call, gated, long_running
from tests.journal.asked import call

from .world import ADA, Call, World, lease_again, leased


def again(w: World) -> Run[Any]:
    """The handler's run, entered anew under the same lease."""
    return Run(w.faulty._link, w.held._leased)


async def step(w: World) -> Any:
    def think() -> str:
        w.effects.append("thought")
        return "thought"

    return await again(w).step(think)


def tools_of(w: World) -> dict[str, Callable[..., Any]]:
    async def search() -> str:
        w.effects.append("searched")
        return "found"

    @gated
    async def pay() -> str:
        w.effects.append("paid")
        return "paid"

    @long_running
    async def film() -> Pending:
        w.effects.append("filmed")
        w.token = current_call().token
        return Pending("job 7")

    return {"search": search, "pay": pay, "film": film}


def calls(tool: str) -> Callable[[World], Any]:
    async def act(w: World) -> str:
        run = again(w)
        await run.load()
        try:
            (message,) = await run.calls([call("c1", tool)], tools_of(w))
        except Paused:
            return "paused"
        return str(message["content"])

    return act


async def approved(w: World) -> None:
    """Leased, with the approval of its gated call."""
    await leased(w)
    await calls("pay")(w)
    (question,) = (await w.sound.inbox.list()).items
    await w.sound.inbox.answer(question.id, Approve(), by=ADA)
    await lease_again(w)


async def filming(w: World) -> None:
    """Waiting for a job."""
    await leased(w)
    await calls("film")(w)


async def checkpoint(w: World) -> str:
    await again(w).checkpoint({"n": 1})
    return "cut"


async def stepped(w: World) -> None:
    """Leased, with a step in its journal."""
    await leased(w)
    await step(w)


JOURNALS: Final[dict[str, Call]] = {
    "step, begun": Call("begin", leased, step, ("thought",)),
    "step, ended": Call("end", leased, step, ("thought",)),
    "call, begun": Call("begin", leased, calls("search"), ("found",)),
    "call, ended": Call("end", leased, calls("search"), ("found",)),
    "call, refused": Call("end", leased, calls("swim"), ("Error (InvalidCall): there is no tool swim",)),
    "call, asks": Call("suspend", leased, calls("pay"), ("paused",)),
    "gated call, begun": Call("begin", approved, calls("pay"), ("paid",)),
    "gated call, ended": Call("end", approved, calls("pay"), ("paid",)),
    "job, begun": Call("begin", leased, calls("film"), ("paused",)),
    "job, started": Call("handle", leased, calls("film"), ("paused",)),
    "complete by token": Call("answer", filming, lambda w: w.faulty.complete(w.token, {"n": 1}, by=ADA)),
    "checkpoint": Call("cut", stepped, checkpoint, ("cut",)),
}
