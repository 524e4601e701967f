"""Every call that only reads."""

from dataclasses import replace
from typing import Any, Final

from broker import Run

from .calls_of_fleets import due
from .calls_of_journals import filming
from .world import SESSION, Call, Step, World, answered, asked, dead, finished, leased, ready


def reads(prepare: Step, act: Step, answer: str) -> Call:
    async def acted(w: World) -> str:
        return str(await act(w))

    return Call("", prepare, acted, (answer,))


async def load(w: World) -> Any:
    run: Run[Any] = Run(w.faulty._link, replace(w.held._leased, ahead=None))
    await run.load()
    return run.input, run.checkpointed


async def cut_before(w: World) -> None:
    """Leased again after a checkpoint."""
    await leased(w)
    await w.held.checkpoint("half way")
    await w.held.release()
    (w.run,) = await w.faulty.queue("agents").lease(("a",))


async def of(w: World, what: str) -> Any:
    match what:
        case "list":
            return [one.id == w.interrupt_id for one in (await w.faulty.inbox.list()).items]
        case "fleet":
            fleet = await w.faulty.fleet()
            return fleet.open, fleet.dead
        case "check":
            found = await w.faulty.check()
            return found.cursor
        case "dead":
            return [one.id == w.run_id for one in await w.faulty.dead.list()]
        case "said":
            return await w.faulty.runs.said(w.run_id)
        case "counts":
            return list((await w.faulty.queue("agents").counts()).values())
        case _:
            return [one.event for one in await w.faulty.history(SESSION)]


async def state_of(w: World) -> Any:
    return await w.faulty.runs.state(w.run_id) is not None


async def why(w: World) -> Any:
    return (await w.faulty.runs.why(w.run_id)).state


async def _state(found: Any) -> str:
    return str((await found).state)


async def _values(w: World) -> list[int]:
    return list((await w.faulty.active(SESSION)).values())


async def _count(w: World) -> int:
    return len(await w.faulty.runs.ready("agents"))


READS: Final[dict[str, Call]] = {
    "inbox.list": reads(asked, lambda w: of(w, "list"), "[True]"),
    "fleet": reads(asked, lambda w: of(w, "fleet"), "(1, 0)"),
    "check": reads(due, lambda w: of(w, "check"), "None"),
    "check, dead": reads(dead, lambda w: of(w, "check"), "None"),
    "dead.list": reads(dead, lambda w: of(w, "dead"), "[True]"),
    "counts": reads(ready, lambda w: of(w, "counts"), "[1]"),
    "history": reads(answered, lambda w: of(w, "history"), "['suspended', 'resolved']"),
    "active": reads(asked, _values, "[1]"),
    "inbox.get": reads(asked, lambda w: _state(w.faulty.inbox.get(w.interrupt_id)), "open"),
    "inbox.wait": reads(answered, lambda w: _state(w.faulty.wait(w.interrupt_id, 10)), "resolved"),
    "runs.get": reads(ready, lambda w: _state(w.faulty.runs.get(w.run_id)), "ready"),
    "runs.wait": reads(finished, lambda w: _state(w.faulty.wait(w.run_id, 10)), "finished"),
    "runs.state": reads(asked, state_of, "True"),
    "runs.said": reads(asked, lambda w: of(w, "said"), "()"),
    "runs.ready": reads(ready, _count, "1"),
    "why, ready": reads(ready, why, "ready"),
    "why, waiting": reads(filming, why, "waiting"),
    "load": reads(leased, load, "({'n': 1}, None)"),
    "load, cut": reads(cut_before, load, "({'n': 1}, 'half way')"),
}
