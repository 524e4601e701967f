"""`why` and `check`: why a run stands where it stands, and what is wrong in a namespace."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..core.diagnosis import Awaited, Checked, Finding, Why
from ..core.limits import JSON
from .given import read_span
from .invocation import Invocation
from .operating import RunId
from .records import DEADLINE_WORDS, stable
from .safe import safe
from .screen import BAD, DIM, GOOD, NAME, WAITS, count, facts, inset, lines, text, until, when, who

SHOWN_FINDINGS = 100
NOT_WELL = 1


async def why(cli: Invocation, run: RunId) -> None:
    """Tells why a run stands where it stands, and what to do about it."""
    async with cli.broker() as broker:
        found = await cli.screen.busy("looking ...", broker.runs.why(run))
    if cli.screen.as_json:
        told = stable(found)
        for name in ("awaited", "workers", "history"):
            told[name] = [stable(one) for one in getattr(found, name)]
        cli.screen.give(told)
        return
    cli.screen.say(*_why(found))


def _why(found: Why) -> list[RenderableType]:
    style = BAD if found.stuck else GOOD if found.state == "finished" else WAITS
    title = Text.assemble(
        (found.agent, NAME), "  ", (found.state, style), ("  stuck" if found.stuck else "", BAD)
    )
    parts: list[RenderableType] = [
        title,
        "",
        lines(found.reason),
        Text(found.remedy, style=DIM),
        "",
        facts(_facts(found)),
    ]
    for one in found.awaited:
        parts += ["", *_awaited(one)]
    if found.error:
        parts += ["", Text("last failure", style=DIM), inset(lines(found.error, BAD))]
    if found.history:
        parts += ["", Text("last events", style=DIM), inset(_events(found))]
    return parts


def _facts(found: Why) -> list[tuple[str, RenderableType | None]]:
    build = f", build {found.build}" if found.build else ""
    timer = (
        f"{when(found.next_timer)}, {until(found.next_timer)}: {found.timer}" if found.next_timer else None
    )
    closed = found.state in ("finished", "withdrawn")
    able = ", ".join(f"{one.name} ({one.holding}/{one.concurrency})" for one in found.workers)
    return [
        ("run", text(found.run_id)),
        ("session", text(found.session_id)),
        ("for", text(f"queue {found.queue}{build}")),
        ("pause", str(found.seq) if found.seq else None),
        ("held by", text(found.holder) if found.holder else None),
        ("before it", count(found.ahead, "ready run") if found.ahead else None),
        ("next", text(timer) if timer else None),
        ("workers", None if closed else text(able or "none that is alive takes it")),
        ("sweeper", None if closed else text(found.sweeper or "none")),
    ]


def _awaited(one: Awaited) -> list[RenderableType]:
    about = one.tool or one.kind
    head = Text.assemble((safe(about), NAME), "  ", (safe(one.interrupt_id), DIM))
    if one.problem is not None:
        return [head, inset(lines(one.problem, BAD))]
    due = "never"
    if one.deadline is not None:
        then = DEADLINE_WORDS.get(one.at_deadline, one.at_deadline) if one.at_deadline else ""
        due = f"{when(one.deadline)}, {until(one.deadline)}; {then}"
    rows: list[tuple[str, RenderableType | None]] = [
        ("for", text(", ".join(one.reviewers)) or None),
        (
            "read by",
            text(", ".join(one.readers)) if one.readers else f"nobody: no group reads the {one.audience}",
        ),
        ("due", text(due)),
    ]
    return [head, inset(facts(rows))]


def _events(found: Why) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for style in (DIM, NAME, ""):
        grid.add_column(style=style, overflow="fold")
    for entry in found.history:
        words = [f"by {who(entry.by)}"] if entry.by else []
        words += [safe(entry.detail)] if entry.detail else []
        grid.add_row(when(entry.at), text(entry.event), ", ".join(words))
    return grid


async def check(
    cli: Invocation,
    *,
    within: Annotated[
        str | None, typer.Option(metavar="SPAN", help="How late is too late: 90s, 5m; else two leases.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Look at about so many records; 0: at all.")] = 0,
) -> int:
    """Tells what is wrong in the namespace.

    Whatever waits has something that ends it, and whatever is ready is taken. The exit code is 0 when nothing is
    wrong, 1 when something is. Dead runs are listed; they wait for you.
    """
    late = read_span("--within", within)
    found: list[Checked] = []
    async with cli.broker() as broker:
        cursor, looked = None, 0
        while not found or (cursor is not None and not 0 < limit <= looked):
            size = min(limit - looked, 10_000) if limit > 0 else 10_000
            part = await cli.screen.busy("checking ...", broker.check(within=late, cursor=cursor, limit=size))
            found.append(part)
            cursor, looked = part.cursor, looked + part.looked_at
    whole = found[-1].model_copy(
        update={
            "findings": tuple(one for part in found for one in part.findings),
            "dead": tuple(one for part in found for one in part.dead), "looked_at": looked,
        }
    )  # fmt: skip
    _tell(cli, whole)
    return 0 if whole.ok else NOT_WELL


def _tell(cli: Invocation, whole: Checked) -> None:
    if cli.screen.as_json:
        told: dict[str, JSON] = stable(whole)
        findings: list[dict[str, Any]] = [stable(one) for one in whole.findings]
        cli.screen.give(told | {"ok": whole.ok, "findings": findings, "dead": list(whole.dead)})
        return
    for one in whole.findings[:SHOWN_FINDINGS]:
        cli.screen.say(*_finding(one))
    if len(whole.findings) > SHOWN_FINDINGS:
        cli.screen.say(
            Text(f"and {len(whole.findings) - SHOWN_FINDINGS} more; --json gives all\n", style=DIM)
        )
    if whole.dead:
        cli.screen.say(f"{count(len(whole.dead), 'run is', 'runs are')} dead; `broker dead` lists them.")
    summary = "Nothing is wrong." if whole.ok else f"{count(len(whole.findings), 'finding')}."
    more = "; there is more" if whole.cursor else ""
    cli.screen.say(
        Text.assemble(
            (summary, GOOD if whole.ok else BAD), (f" {_looked(whole.looked_at, whole.at)}{more}", DIM)
        )
    )


def _looked(number: int, at: datetime) -> str:
    return f"{count(number, 'record')} looked at, {when(at)}"


def _finding(one: Finding) -> list[RenderableType]:
    head = Text.assemble((str(one.trouble), BAD), "  ", safe(one.text))
    return [head, inset(Text(safe(one.remedy), style=DIM)), ""]
