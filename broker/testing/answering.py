"""Scripted answerers: who says what to which question of a test, when, and how often. Imports the blocking broker.

    answers=[approve("search_*"), reject("cancel_*", "too late"), late(approve("refund")), never("audit")]

The first script that fits a question answers it. It fits by the name of the tool (a pattern of `fnmatch`), or by the
kind where no tool is asked about, and where its answer is among those offered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from .._sync.client import Broker
from ..core.answers import Answer, Approve, Complete, Edit, Fail, Principal, Reject, Respond
from ..core.limits import JSON
from ..core.models import OnExpiry
from ..core.outcomes import Outcome
from ..core.records import InterruptRecord
from ..errors import InvalidInput
from .clock import Clock

Said: TypeAlias = Answer | Callable[[InterruptRecord], Answer]
"""An answer, or what makes one of the question."""

FIRST: Final = Principal.local("first")
SECOND: Final = Principal.local("second")
"""Who answers: the second party comes into it where two different answers are given."""


class Unanswered(AssertionError):
    """A question that no script of the test fits."""


@dataclass(frozen=True, slots=True)
class Script:
    """What is said to the questions that fit. Made by `answer`, `approve`, ..., changed by `late` and `twice`."""

    pattern: str
    says: tuple[tuple[Principal, Said], ...] = ()
    reason: str | None = None
    is_late: bool = False

    def answers(self, record: InterruptRecord) -> list[tuple[Principal, Answer]] | None:
        """What is said to one question by whom; None where the script does not fit it."""
        asked = record.interrupt
        name = asked.action.tool if asked.action is not None else asked.kind.TAG
        if not fnmatchcase(name, self.pattern) or self.reason not in (None, asked.reason):
            return None
        made = [(who, said(record) if callable(said) else said) for who, said in self.says]
        return made if all(one.kind in asked.offered for _, one in made) else None


def answer(pattern: str, said: Said, *, reason: str | None = None) -> Script:
    """Says any answer, or what a function makes of the `InterruptRecord`.

    With a `reason` only questions asked for it fit, such as `may_have_run` for a call in doubt.
    """
    return Script(pattern, ((FIRST, said),), reason)


def approve(pattern: str = "*") -> Script:
    """Says yes."""
    return answer(pattern, Approve())


def reject(pattern: str = "*", reason: str = "no") -> Script:
    """Says no, with a reason for the agent."""
    return answer(pattern, Reject(reason=reason))


def edit(pattern: str, **arguments: JSON) -> Script:
    """Says yes to other arguments: those of the question with these in their places."""

    def edited(record: InterruptRecord) -> Answer:
        action = record.interrupt.action
        return Edit(arguments={**(action.arguments if action is not None else {}), **arguments})

    return answer(pattern, edited)


def respond(pattern: str, payload: JSON, *, reason: str | None = None) -> Script:
    """Answers in the tool's place, or answers a question that is no approval."""
    return answer(pattern, Respond(payload=payload), reason=reason)


def complete(pattern: str, value: JSON = None) -> Script:
    """Says what a job elsewhere came to."""
    return answer(pattern, Complete(value=value))


def fail(pattern: str, error: str) -> Script:
    """Says that a job elsewhere went wrong."""
    return answer(pattern, Fail(error=error))


def never(pattern: str = "*") -> Script:
    """Says nothing: the clock is moved past the deadline. A question without one stays open."""
    return Script(pattern)


def late(script: Script) -> Script:
    """Says the same too late: after the clock was moved past the deadline."""
    return replace(script, is_late=True)


def twice(script: Script, then: Script | None = None) -> Script:
    """Says the same again, as somebody who clicks twice does; or what `then` says, by a second party."""
    again = tuple((SECOND, said) for _, said in then.says) if then is not None else script.says
    return replace(script, says=script.says + again)


@dataclass(frozen=True, slots=True)
class Spoken:
    """One answer that was given, and what became of it."""

    question: InterruptRecord
    answer: Answer
    outcome: Outcome


@dataclass(slots=True)
class Desk:
    """Answers the questions of one run as scripted, and keeps what was said to each answer."""

    broker: Broker
    clock: Clock
    scripts: Sequence[Script]
    spoken: list[Spoken] = field(default_factory=list)
    left_open: set[str] = field(default_factory=set)
    """Questions that nobody answers, and that no deadline ends."""
    _met: set[str] = field(default_factory=set)

    def look(self, run_id: str) -> list[InterruptRecord]:
        """Answers what the run has open and was not met before; gives what it has open."""
        open_ = [one for one in self.broker.inbox.list(limit=500).items if one.run_id == run_id]
        new = [(one, self._script(one)) for one in open_ if one.id not in self._met]
        # Those that move the clock come last: it must not end the others' time.
        for one, script in sorted(new, key=lambda pair: pair[1].is_late or not pair[1].says):
            self._met.add(one.id)
            self._follow(script, one)
        return open_

    def _script(self, record: InterruptRecord) -> Script:
        for script in self.scripts:
            if script.answers(record) is not None:
                return script
        asked = record.interrupt
        what = asked.action.tool if asked.action is not None else asked.kind.TAG
        offers = ", ".join(asked.offered)
        raise Unanswered(
            f"nobody answers {what!r} ({record.id}, which offers {offers}): the test has no script that fits"
        )

    def _follow(self, script: Script, record: InterruptRecord) -> None:
        if script.is_late or not script.says:
            if record.deadline is not None:
                self.clock.advance_past(record.deadline)
            elif script.is_late:
                raise InvalidInput(
                    "late", "is said of a question without a deadline", "expires_in on the tool"
                )
            if record.deadline is None or record.interrupt.at_expiry is OnExpiry.WAIT:
                self.left_open.add(record.id)
        for who, said in script.answers(record) or ():
            outcome = self.broker.inbox.answer(record.id, said, by=who, seen=record.digest)
            self.spoken.append(Spoken(record, said, outcome))
