"""What happened in a thread, as entelix's audit tells it: from the session's history, for as long as that is kept."""

from typing import ClassVar, Final

from ..._async.client import AsyncBroker
from ...core.answers import Principal
from ...core.fields import Id, Instant, Text
from ...core.kinds import ApprovalPending
from ...core.records import HistoryEntry
from ...core.shape import Model

PAGE: Final = 1000


class AuditEvent(Model):
    """One line of a thread's audit: who did what when, in which tenant and run, about which call, and why.

    `event` is `paused`, `approved`, `denied`, `answered`, `abandoned`, `timed_out` or `resumed`, and the broker's own
    word for what entelix has none. `about` is what a pause asked: a kind, or `paused before <node>`.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("event", "at", "tenant", "thread", "run_id", "tool_use_id", "by")

    event: Id
    at: Instant
    tenant: Id
    thread: Id
    run_id: Id | None = None
    interrupt_id: Id | None = None
    about: Text | None = None
    tool_use_id: Id | None = None
    by: Principal | None = None
    reason: Text | None = None


_EVENTS: Final[dict[str, str]] = {"suspended": "paused", "cancelled": "abandoned", "expired": "timed_out"}
_DECIDED: Final[dict[str, str]] = {"approve": "approved", "edit": "approved", "reject": "denied"}


async def audit(broker: AsyncBroker, thread: str) -> tuple[AuditEvent, ...]:
    """What happened in a thread, oldest first: pauses, decisions with their reasons, resumes."""
    entries: list[HistoryEntry] = []
    while page := await broker.history(thread, start=len(entries), limit=PAGE):
        entries += page
    asked = {one.interrupt_id: one.detail or "" for one in entries if one.event == "suspended"}
    return tuple(_event(broker.namespace, thread, one, asked.get(one.interrupt_id)) for one in entries)


def _event(tenant: str, thread: str, entry: HistoryEntry, asked: str | None) -> AuditEvent:
    about, call, reason = asked, None, None
    kind, _, of_call = (asked or "").partition(" ")
    if kind == ApprovalPending.TAG:
        about, call = kind, of_call
    said, _, why = (entry.detail or "").partition(": ")
    event = _EVENTS.get(entry.event, entry.event)
    match entry.event:
        case "resolved":
            event, reason = _DECIDED.get(said.removeprefix("early "), "answered"), why or None
        case "cancelled":
            reason = why or None
        case "parked":  # it came before its question, or its call is none of the thread's
            call = entry.detail
        case "leased" if entry.seq:
            event = "resumed"
        case _:
            pass
    return AuditEvent(
        event=event, at=entry.at, tenant=tenant, thread=thread, run_id=entry.run_id or None,
        interrupt_id=entry.interrupt_id, about=about, tool_use_id=call, by=entry.by, reason=reason,
    )  # fmt: skip
