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
    run_id: Id
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
    kind, _, call = (asked or "").partition(" ")
    said, _, reason = (entry.detail or "").partition(": ")
    event = _EVENTS.get(entry.event, entry.event)
    if entry.event == "resolved":
        event = _DECIDED.get(said.partition(",")[0], "answered")
    elif entry.event == "leased" and entry.seq:
        event = "resumed"
    is_approval = kind == ApprovalPending.TAG
    return AuditEvent(
        event=event, at=entry.at, tenant=tenant, thread=thread, run_id=entry.run_id, interrupt_id=entry.interrupt_id,
        about=kind if is_approval else asked, tool_use_id=call if is_approval and call else None, by=entry.by,
        reason=reason if reason and entry.event in ("resolved", "cancelled") else None,
    )  # fmt: skip
