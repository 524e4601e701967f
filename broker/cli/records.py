"""The broker's records as JSON with stable keys, and in a person's words."""

from typing import Any

from ..core.answers import Answer, Approve, Cancel, Complete, Edit, Fail, Reject, Respond
from ..core.limits import JSON
from ..core.models import Audience, Interrupt, OnExpiry
from ..core.records import InterruptRecord, Resolution
from ..core.shape import Model, slots
from ..core.states import Settlement

SETTLED_WORDS = {
    Settlement.OPEN: "open",
    Settlement.RESOLVED: "answered",
    Settlement.CANCELLED: "cancelled",
    Settlement.EXPIRED: "expired: nobody answered in time",
    Settlement.WITHDRAWN: "withdrawn by the one who asked",
    Settlement.SUPERSEDED: "superseded",
}

DEADLINE_WORDS = {
    OnExpiry.DENY: "then it is denied",
    OnExpiry.CANCEL: "then it is cancelled",
    OnExpiry.WAIT: "and it stays open after that",
    OnExpiry.DEFAULT: "then its default answer counts",
}


def at_deadline(one: Interrupt) -> str:
    """What an interrupt's deadline does, in words."""
    if one.at_expiry is OnExpiry.DENY and one.addressed_to is Audience.COMPLETIONS:
        return "then it has failed"
    return DEADLINE_WORDS.get(one.at_expiry, one.at_expiry)


def stable(record: Model) -> dict[str, JSON]:
    """A record with every key it can have, null where it has no value. What is nested is in the published wire form."""
    told = record.to_json()
    known = {
        slot.wire: told.get(slot.wire, _plain(getattr(record, slot.name))) for slot in slots(type(record))
    }
    return {name: value for name, value in told.items() if name not in known} | known


def _plain(value: Any) -> JSON:
    """The JSON of a value that the wire leaves out since it is the default."""
    if isinstance(value, Model):
        return value.to_json()
    if isinstance(value, tuple):
        return []
    return value if isinstance(value, str | int | float | dict) else None


def wanted(record: InterruptRecord) -> str:
    """What an interrupt waits for, in a word."""
    if record.problem is not None:
        return "unreadable"
    if record.interrupt.addressed_to is Audience.COMPLETIONS:
        return "completion"
    return "approval" if record.interrupt.kind.type == "approval_pending" else "answer"


def subject(record: InterruptRecord) -> str:
    """What an interrupt is about: its tool, else its message, else its kind's label."""
    one = record.interrupt
    if one.action is not None:
        return one.action.tool
    return one.message or one.kind.label


def said(answer: Answer) -> tuple[str, str | None, JSON, bool]:
    """An answer in words: what was done, the remark that came with it, and its JSON where it has one."""
    match answer:
        case Approve(note=note):
            return "approved", note, None, False
        case Edit(arguments=arguments, note=note):
            return "approved with other arguments", note, arguments, True
        case Reject(reason=reason):
            return "rejected", reason, None, False
        case Respond(payload=payload, note=note):
            return "answered", note, payload, True
        case Complete(value=value):
            return "completed", None, value, True
        case Fail(error=error):
            return "failed", error, None, False
        case Cancel(reason=reason, payload=payload):
            return "cancelled", reason, payload, payload is not None
        case _:
            return (
                f"answered in a way this release does not know ({answer.kind})",
                None,
                answer.to_wire(),
                True,
            )


def ended(resolution: Resolution) -> str:
    """How an interrupt ended, in words."""
    if resolution.answer is not None:
        return said(resolution.answer)[0]
    return SETTLED_WORDS.get(resolution.state, resolution.state)
