"""`approve`, `reject`, `respond`, `complete`, `fail` and `cancel`: one answer to one interrupt."""

from contextlib import suppress
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from .._async.client import AsyncBroker
from ..core.answers import Answer, Approve, Cancel, Complete, Edit, Fail, Reject, Respond
from ..core.outcomes import (
    Accepted,
    AlreadyDecided,
    Conflict,
    Expired,
    Full,
    Invalid,
    NotAllowed,
    NotDurable,
    Outcome,
    Parked,
    Replayed,
    Superseded,
    Unknown,
    Withdrawn,
)
from ..core.states import RunState
from ..errors import OUTCOME_CODES, BrokerError
from .given import read_json
from .invocation import Invocation
from .records import said
from .screen import BAD, DIM, GOOD, ago, lines, text, when, who

Id = Annotated[str, typer.Argument(metavar="ID", help="The interrupt.", show_default=False)]
Seen = Annotated[
    str | None,
    typer.Option(metavar="DIGEST", help="The digest that `show` gave: what you saw."),
]
Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A remark that goes with the answer.")
]
Reason = Annotated[
    str,
    typer.Option("--reason", "--note", metavar="TEXT", help="Why; the agent is told.", show_default=False),
]
Value = Annotated[
    str, typer.Argument(metavar="JSON", help="JSON, @FILE, or - for standard input.", show_default=False)
]


async def approve(
    cli: Invocation,
    id: Id,
    *,
    note: Note = None,
    seen: Seen = None,
    edit: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Other arguments, whole: JSON, @FILE, or -.", show_default=False),
    ] = None,
) -> int:
    """Lets the call go on, as asked or with other arguments."""
    if edit is None:
        return await answer(cli, id, Approve(note=note), seen)
    return await answer(cli, id, Edit(arguments=read_json("--edit", edit), note=note), seen)


async def reject(cli: Invocation, id: Id, *, reason: Reason, seen: Seen = None) -> int:
    """Says no, and why."""
    return await answer(cli, id, Reject(reason=reason), seen)


async def respond(cli: Invocation, id: Id, payload: Value, *, note: Note = None, seen: Seen = None) -> int:
    """Answers a question with JSON; text stands in quotes."""
    return await answer(cli, id, Respond(payload=read_json("payload", payload), note=note), seen)


async def complete(cli: Invocation, id: Id, value: Value, *, seen: Seen = None) -> int:
    """Gives the result of a job that ran elsewhere."""
    return await answer(cli, id, Complete(value=read_json("value", value)), seen)


async def fail(
    cli: Invocation,
    id: Id,
    error: Annotated[
        str, typer.Argument(metavar="TEXT", help="What went wrong; the agent is told.", show_default=False)
    ],
    *,
    seen: Seen = None,
) -> int:
    """Says that a job that ran elsewhere went wrong."""
    return await answer(cli, id, Fail(error=error), seen)


async def cancel(
    cli: Invocation,
    id: Id,
    *,
    reason: Annotated[str | None, typer.Option("--reason", "--note", metavar="TEXT", help="Why.")] = None,
    seen: Seen = None,
) -> int:
    """Says that nobody will answer, which is no rejection."""
    return await answer(cli, id, Cancel(reason=reason), seen)


async def answer(cli: Invocation, id: str, answer: Answer, seen: str | None) -> int:
    """Gives an answer and tells what became of it. Safe to repeat: the same answer by the same party is one."""
    async with cli.broker() as broker:
        outcome = await broker.inbox.answer(id, answer, seen=seen)
        if cli.screen.as_json:
            cli.screen.give(outcome.to_json())
        else:
            cli.screen.say(*tell(outcome, _done(answer)))
            if outcome.ok:
                cli.screen.say(*await _what_next(broker, outcome))
    return OUTCOME_CODES[outcome.code].exit_code


def _done(answer: Answer) -> str:
    return f"{said(answer)[0].capitalize()}."


def tell(outcome: Outcome, done: str) -> list[RenderableType]:
    """An outcome in words; `done` is the sentence for success."""
    match outcome:
        case Accepted():
            return [Text(done, style=GOOD)]
        case Replayed():
            return [Text(f"{done} It had been done before, by the same party.", style=GOOD)]
        case Parked(until=moment):
            kept = f" It is kept until {when(moment)}." if moment else ""
            return [Text(f"Kept: the question has not been asked yet.{kept}", style=GOOD)]
        case NotDurable(wanted=wanted, reached=reached):
            return [
                Text(
                    f"Done, but not safe yet: {reached} was reached, {wanted} was asked for. Repeat it.",
                    style=BAD,
                )
            ]
        case _:
            return [Text.assemble(("Not counted: ", BAD), text(_refusal(outcome)))]


def _refusal(outcome: Outcome) -> str:
    match outcome:
        case AlreadyDecided(winner=winner):
            kind = f" with {winner.answer}" if winner.answer else ""
            return f"{who(winner.by)} was first{kind}{', ' + ago(winner.at) if winner.at else ''}."
        case Expired(at=moment):
            return f"its time was over{' ' + ago(moment) if moment else ''}."
        case Withdrawn(by=by, at=moment):
            return f"{who(by)} took the question back{', ' + ago(moment) if moment else ''}."
        case Superseded():
            return "the question has lost its point; another one took its place or was decided first."
        case NotAllowed(reason=reason) | Conflict(reason=reason) | Full(reason=reason):
            return f"{reason}."
        case Invalid(field=field, problem=problem, allowed=allowed):
            return f"{field} {problem}; allowed: {allowed}."
        case Unknown(id=name):
            return f"there is no {name!r}: it never was, or its time to be kept has passed."
        case _:
            return outcome.code


async def _what_next(broker: AsyncBroker, outcome: Outcome) -> list[RenderableType]:
    """What the run does now; no fault of looking is a fault of the answer."""
    run_id = outcome.run_id if isinstance(outcome, Accepted | Replayed) else None
    if run_id is None:
        return []
    words = {
        RunState.WAITING: "The run waits for more.", RunState.READY: "The run goes on at the next free worker.",
        RunState.LEASED: "The run has gone on.", RunState.FINISHED: "The run has finished.",
        RunState.DEAD: "The run is dead; `broker requeue` sends it back.",
    }  # fmt: skip
    with suppress(BrokerError):
        run = await broker.runs.get(run_id)
        return [Text(words.get(run.state, ""), style=DIM), lines(run_id, DIM)]
    return []
