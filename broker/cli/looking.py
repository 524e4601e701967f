"""`ls`, `show` and `history`: what waits, one record whole, and what happened."""

from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from .._async.client import AsyncBroker
from ..core.limits import JSON
from ..core.pages import Page
from ..core.records import HistoryEntry, InterruptRecord, RunRecord
from ..errors import UnknownId
from .given import read_span
from .invocation import Invocation
from .records import SETTLED_WORDS, at_deadline, ended, said, stable, subject, wanted
from .safe import safe
from .screen import (
    BAD,
    DIM,
    GOOD,
    NAME,
    WAITS,
    ago,
    brief_span,
    columns,
    count,
    facts,
    inset,
    json_block,
    lines,
    text,
    until,
    when,
    who,
)

ID_WIDTH = 40
"""An interrupt's id is never folded in a list."""
QUEUE_WIDTH = 12

Id = Annotated[str, typer.Argument(metavar="ID", help="An interrupt or a run.", show_default=False)]


async def ls(
    cli: Invocation,
    *,
    queue: Annotated[str | None, typer.Option(help="Of this worker pool.")] = None,
    tool: Annotated[str | None, typer.Option(help="About this tool.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Of this kind: custom, approval_pending, scheduled_pause.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="With this label.")] = None,
    reviewer: Annotated[str | None, typer.Option(help="For this reviewer.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Asked longer ago: 90s, 5m, 2h, 1d.")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many, 1 to 500.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where an earlier page ended.")] = None,
) -> None:
    """Lists what waits for an answer, the oldest first."""
    age = read_span("--older-than", older_than)
    async with cli.broker() as broker:
        found = broker.inbox.list(
            queue=queue, tool=tool, kind=kind, label=label, reviewer=reviewer, older_than=age,
            cursor=cursor, limit=limit,
        )  # fmt: skip
        page = await cli.screen.busy("looking ...", found)
    if cli.screen.as_json:
        items = [stable(record) for record in page.items]
        cli.screen.give({"items": items, "cursor": page.cursor, "looked_at": page.looked_at})
        return
    filtered = any(one is not None for one in (queue, tool, kind, label, reviewer, age))
    cli.screen.say(*_page(page, "Nothing waits that fits." if filtered else "Nothing waits for an answer."))


def _page(page: Page, nothing: str) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if page.items:
        table = columns(("FOR", "WHAT", "QUEUE", "AGE", "DUE IN"), right=("AGE", "DUE IN"))
        table.columns[1].min_width, table.columns[2].max_width = ID_WIDTH, QUEUE_WIDTH
        for record in page.items:
            style = BAD if record.problem else WAITS
            about = Text.assemble((subject_line(record), NAME), "\n", (safe(record.id), DIM))
            table.add_row(Text(wanted(record), style=style), about, text(record.queue), *_ages(record))
        parts.append(table)
    elif page.cursor is None:
        parts.append(nothing)
    if page.cursor is not None:
        looked = f"{count(page.looked_at, 'interrupt')} looked at. "
        parts.append(Text(f"\n{looked}There is more: the same with --cursor {page.cursor}", style=DIM))
    return parts


def _ages(record: InterruptRecord) -> tuple[str, str]:
    now = datetime.now(UTC)
    due = brief_span(record.deadline - now) if record.deadline else "never"
    return brief_span(now - record.opened_at), due


def subject_line(record: InterruptRecord, most: int = ID_WIDTH) -> str:
    """What an interrupt is about, on one line of at most so many characters."""
    whole = text(subject(record)).plain
    return whole if len(whole) <= most else f"{whole[: most - 3]}..."


async def show(
    cli: Invocation,
    id: Id,
    *,
    state: Annotated[
        bool, typer.Option("--state", help="Also the agent's state, frozen at the pause.", show_default=False)
    ] = False,
) -> None:
    """Shows one interrupt or run, whole.

    An answer given with the digest under 'seen' counts for exactly what is shown, or not at all.
    """
    async with cli.broker() as broker:
        record = await _found(broker, id)
        run_id = record.id if isinstance(record, RunRecord) else record.run_id
        frozen = await broker.runs.state(run_id) if state else None
    if cli.screen.as_json:
        more = {"frozen": frozen.to_json() if frozen else None} if state else {}
        cli.screen.give(stable(record) | more)
        return
    cli.screen.say(*(_run(record) if isinstance(record, RunRecord) else _interrupt(record)))
    if frozen is not None:
        cli.screen.say("", Text("state", style=DIM), inset(json_block(frozen.to_json())))


async def _found(broker: AsyncBroker, id: str) -> RunRecord | InterruptRecord:
    if id.startswith("run_"):
        return await broker.runs.get(id)
    try:
        return await broker.inbox.get(id)
    except UnknownId:
        raise UnknownId("interrupt or run", id) from None


def _interrupt(record: InterruptRecord) -> list[RenderableType]:
    one, state = record.interrupt, SETTLED_WORDS.get(record.state, record.state)
    title = Text.assemble(
        (subject_line(record, 60), NAME), ("  ", ""), (state, WAITS if state == "open" else DIM)
    )
    parts: list[RenderableType] = [title]
    if record.problem:
        parts.append(lines(record.problem, BAD))
    if one.message and one.message != subject(record):
        parts.append(lines(one.message))
    parts.append("")
    shown: tuple[tuple[str, JSON], ...] = (
        ("arguments", one.action.arguments if one.action else None),
        ("question", one.payload),
        ("answer fits", one.response_schema),
        ("handle", one.pending_handle),
        ("more", one.metadata or None),
    )
    for label, value in shown:
        if value is not None:
            parts += [Text(label, style=DIM), inset(json_block(value)), ""]
    parts.append(facts(_interrupt_facts(record)))
    if record.resolution is not None:
        parts += ["", *_resolution(record)]
    elif record.problem is None:
        parts += ["", *_how_to_answer(record)]
    return parts


def _interrupt_facts(record: InterruptRecord) -> list[tuple[str, RenderableType | None]]:
    one, due = record.interrupt, None
    if record.deadline is not None:
        due = f"{when(record.deadline)}, {until(record.deadline)}; {at_deadline(one)}"
    agent = f"{record.agent}, queue {record.queue}" + (f", build {record.build}" if record.build else "")
    return [
        ("interrupt", text(record.id)),
        ("run", text(record.run_id)),
        ("session", text(record.session_id)),
        ("agent", text(agent)),
        ("asked", f"{when(record.opened_at)}, {ago(record.opened_at)}, pause {record.seq}"),
        ("due", due if record.resolution is None else None),
        ("kind", text(one.kind.label)),
        ("call", text(one.call_id or "") or None),
        ("labels", text(", ".join(one.labels)) or None),
        ("for", text(", ".join(one.reviewers)) or None),
        ("by", text(who(one.requested_by)) if one.requested_by else None),
        ("takes", ", ".join(one.offered)),
        ("seen", text(record.digest)),
    ]


def _resolution(record: InterruptRecord) -> list[RenderableType]:
    found = record.resolution
    if found is None:
        return []
    style = GOOD if record.state == "resolved" else BAD
    head = Text.assemble((ended(found), style), f" by {who(found.by)}, {when(found.at)}, {ago(found.at)}")
    parts: list[RenderableType] = [head]
    if found.answer is not None:
        _, remark, value, has_value = said(found.answer)
        if remark:
            parts.append(inset(lines(remark)))
        if has_value:
            parts.append(inset(json_block(value)))
    return parts


def _how_to_answer(record: InterruptRecord) -> list[RenderableType]:
    """The commands that fit, ready to be copied, with the digest that says what was seen."""
    shapes = {
        "approve": "", "edit": " --edit JSON", "reject": " --reason TEXT", "respond": " JSON",
        "complete": " JSON", "fail": " TEXT",
    }  # fmt: skip
    first = next((kind for kind in record.interrupt.offered if kind in shapes), None)
    if first is None:
        return []
    verb = "approve" if first == "edit" else first
    return [Text(f"broker {verb} {record.id}{shapes[first]} \\\n  --seen {record.digest}", style=DIM)]


def _run(run: RunRecord) -> list[RenderableType]:
    style = {"finished": GOOD, "dead": BAD, "withdrawn": DIM}.get(run.state, WAITS)
    lease = f"{run.holder}, until {when(run.lease_until)}" if run.holder and run.state == "leased" else None
    own: list[tuple[str, RenderableType | None]] = [
        ("run", text(run.id)),
        ("session", text(run.session_id)),
        ("agent", text(f"{run.agent}, queue {run.queue}" + (f", build {run.build}" if run.build else ""))),
        ("priority", str(run.priority) if run.priority else None),
        ("pauses", str(run.seq)),
        ("leased", _times(run)),
        ("held by", text(lease) if lease else None),
        ("started", f"{when(run.created_at)}, {ago(run.created_at)}"),
        ("paused", f"{when(run.updated_at)}, {ago(run.updated_at)}" if run.seq else None),
        ("asks" if run.state == "waiting" else "asked", lines("\n".join(run.interrupt_ids)) or None),
    ]
    parts: list[RenderableType] = [Text.assemble((run.agent, NAME), "  ", (run.state, style)), "", facts(own)]
    for label, value in (("input", run.input), ("result", run.result), ("metadata", run.metadata or None)):
        if value is not None:
            parts += ["", Text(label, style=DIM), inset(json_block(value))]
    if run.errors:
        parts += ["", Text("failures", style=DIM), *(inset(lines(one, BAD)) for one in run.errors)]
    return parts


def _times(run: RunRecord) -> str:
    times = count(run.fence, "time")
    return f"{times}, {run.tries} without a pause or an end" if run.tries > 1 else times


async def history(
    cli: Invocation,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)],
    *,
    limit: Annotated[int, typer.Option(help="At most so many entries, 1 to 1000.")] = 100,
    start: Annotated[int, typer.Option(help="From this place; negative: from the end.")] = 0,
) -> None:
    """Tells what happened in a session: what, when, by whom."""
    async with cli.broker() as broker:
        found = await cli.screen.busy("looking ...", broker.history(session, start=start, limit=limit))
    if cli.screen.as_json:
        cli.screen.give([stable(entry) for entry in found])
        return
    if not found:
        cli.screen.say("Nothing is recorded for this session, or no longer.")
    for run, entries in groupby(found, key=lambda entry: entry.run_id):
        cli.screen.say(Text.assemble(("run ", DIM), text(run)), inset(_events(list(entries))), "")


def _events(entries: list[HistoryEntry]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for style in (DIM, NAME, ""):
        grid.add_column(style=style, overflow="fold", no_wrap=style != "")
    for entry in entries:
        words = [f"pause {entry.seq}"] if entry.seq else []
        words += [f"by {who(entry.by)}"] if entry.by else []
        words += [safe(entry.detail)] if entry.detail else []
        about = Text(", ".join(words))
        if entry.interrupt_id:
            about.append(f"\n{safe(entry.interrupt_id)}" if words else safe(entry.interrupt_id), style=DIM)
        grid.add_row(when(entry.at), text(entry.event), about)
    return grid
