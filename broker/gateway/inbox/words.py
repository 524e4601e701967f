"""What a page says of records: states, spans and outcomes in a person's words."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ...core.answers import (
    Answer,
    AnswerKind,
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Principal,
    Reject,
    Respond,
)
from ...core.limits import JSON
from ...core.models import Audience, Interrupt, OnExpiry
from ...core.outcomes import (
    AlreadyDecided,
    Expired,
    NotDurable,
    Outcome,
    Parked,
    Superseded,
    Unknown,
    Withdrawn,
)
from ...core.records import InterruptRecord, Resolution
from ...core.states import Settlement

VERBS: Final[dict[str, str]] = {
    AnswerKind.APPROVE: "approved",
    AnswerKind.EDIT: "approved with changes",
    AnswerKind.REJECT: "rejected",
    AnswerKind.RESPOND: "answered",
    AnswerKind.COMPLETE: "completed",
    AnswerKind.FAIL: "reported as failed",
    AnswerKind.CANCEL: "cancelled",
}
ENDS: Final[dict[str, str]] = {
    Settlement.OPEN: "open",
    Settlement.RESOLVED: "answered",
    Settlement.CANCELLED: "cancelled",
    Settlement.EXPIRED: "expired",
    Settlement.WITHDRAWN: "withdrawn",
    Settlement.SUPERSEDED: "superseded",
}
DEADLINES: Final[dict[str, str]] = {
    OnExpiry.DENY: "then it is denied",
    OnExpiry.CANCEL: "then it is cancelled",
    OnExpiry.WAIT: "a reminder only: it stays open",
    OnExpiry.DEFAULT: "then its default answer counts",
}


def subject(record: InterruptRecord) -> str:
    """What a question is about: its tool, else its message, else its kind."""
    if record.problem is not None:
        return "A question that cannot be read"
    one = record.interrupt
    return one.action.tool if one.action is not None else one.message or one.kind.label


def at_deadline(one: Interrupt) -> str:
    """What the deadline does."""
    if one.at_expiry is OnExpiry.DENY and one.addressed_to is Audience.COMPLETIONS:
        return "then the job has failed"
    return DEADLINES.get(one.at_expiry, one.at_expiry)


def verb(resolution: Resolution) -> str:
    """How a question ended, in a word or two."""
    if resolution.answer is not None and resolution.state is not Settlement.EXPIRED:
        return VERBS.get(resolution.answer.kind, f"answered ({resolution.answer.kind})")
    return ENDS.get(resolution.state, resolution.state)


def remark(answer: Answer | None) -> str | None:
    """The words that came with an answer."""
    match answer:
        case Approve(note=text) | Edit(note=text) | Respond(note=text) | Cancel(reason=text):
            return text
        case Reject(reason=text) | Fail(error=text):
            return text
        case _:
            return None


def has_value(answer: Answer | None) -> bool:
    """Whether an answer carries a value of its own."""
    return isinstance(answer, Respond | Complete) or (
        isinstance(answer, Cancel) and answer.payload is not None
    )


def value_of(answer: Answer | None) -> JSON:
    """The value that an answer carries."""
    match answer:
        case Respond(payload=value) | Cancel(payload=value) | Complete(value=value):
            return value
        case _:
            return None


def who(by: Principal | None) -> str:
    """A party by its id."""
    return by.id if by is not None else "nobody"


def now() -> datetime:
    """The time of this machine: ages on a page may be off by as much as its clock is."""
    return datetime.now(UTC)


def span(length: timedelta) -> str:
    """A length of time by its largest unit: `45 s`, `2 min`, `5 h`, `3 d`."""
    seconds = max(round(length.total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size - size // 60:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def ago(moment: datetime) -> str:
    """How long ago a moment was."""
    length = now() - moment
    return "just now" if length < timedelta(seconds=2) else f"{span(length)} ago"


def until(moment: datetime) -> str:
    """How long it is to a moment."""
    length = moment - now()
    return span(length) if length > timedelta() else "over"


def stamp(moment: datetime) -> str:
    """A moment for machines: the script of the page shows it in the reader's own time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(moment: datetime) -> str:
    """A moment for people without a script."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def refusal(outcome: Outcome) -> str:
    """Why an answer did not count: who was first, when and with what, or what else stood in its way (F11)."""
    match outcome:
        case AlreadyDecided(winner=winner):
            done = VERBS.get(winner.answer, winner.answer) if winner.answer else "decided"
            when = f" {ago(winner.at)}, at {clock(winner.at)}" if winner.at else ""
            return f"{who(winner.by)} was first: {done}{when}. Your answer did not count."
        case Expired(at=moment):
            passed = f" {ago(moment)}" if moment else ""
            return f"Its time was over{passed}, so your answer did not count."
        case Withdrawn(by=by, at=moment):
            return f"{who(by)} took the question back{f' {ago(moment)}' if moment else ''}. Your answer did not count."
        case Superseded():
            return "The question has lost its point: another one took its place. Your answer did not count."
        case NotDurable(reached=reached, wanted=wanted):
            return f"It happened, but is not safe yet: {reached} was reached, {wanted} was asked for. Send it again."
        case Parked():
            return "Kept until its question is asked."
        case Unknown():
            return "There is no such question: it never was, or its time to be kept has passed."
        case _:
            text = str(outcome)
            return f"{text[:1].upper()}{text[1:]}."
