"""From the input of a run to one batch of answers, or the reason why none of it is sent.

The whole list is checked before anything changes: coverage, duplicates, unknown ids, expiry, payloads. A list that was
taken before is a replay: it changes nothing and runs nothing, in whatever order it comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from ...core.answers import AnswerKind
from ...core.batches import AnswerTo
from ...core.records import InterruptRecord, RunRecord
from ...core.states import Settlement
from ...errors import InvalidInput
from .answering import Fault, answer_of, can_check, message_answers, says_the_same
from .asking import deadline_of, foreign_of, is_frontend, wire_id
from .declared import version_warnings
from .shapes import Interrupt, ResumeEntry, RunAgentInput, RunError, Status


class Unknowns(StrEnum):
    """What to do with an entry for an interrupt that the thread does not have."""

    DROP = "drop"
    """Go on without it, and warn."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Policy:
    """Where AG-UI's concept page and its specification differ, and what the protocol leaves to the agent.

    `cancel_expired`: an expired interrupt can still be cancelled, though not resolved. `validate`: payloads are held
    against the response schemas of other agents' interrupts (the broker's own questions always are).
    """

    unknown: Unknowns = Unknowns.DROP
    cancel_expired: bool = True
    validate: bool = True


SPEC_1_0: Final = Policy()
"""As the frozen specification says."""
CONCEPT: Final = Policy(unknown=Unknowns.REFUSE, cancel_expired=False)
"""As the concept page says."""


class Code(StrEnum):
    """Why an input was refused."""

    PENDING_INTERRUPTS = "PENDING_INTERRUPTS"
    """Interrupts are open, and the input answers none of them."""
    PARTIAL_RESUME = "PARTIAL_RESUME"
    """The list leaves out an open interrupt."""
    PENDING_TOOL_CALLS = "PENDING_TOOL_CALLS"
    """A call that the client is to make has no tool message."""
    DUPLICATE_INTERRUPT_ID = "DUPLICATE_INTERRUPT_ID"
    UNKNOWN_INTERRUPT_ID = "UNKNOWN_INTERRUPT_ID"
    WRONG_THREAD = "WRONG_THREAD"
    """An interrupt belongs to another thread."""
    RUN_ID_REUSED = "RUN_ID_REUSED"
    """A resume needs a run id of its own."""
    INTERRUPT_EXPIRED = "INTERRUPT_EXPIRED"
    INVALID_PAYLOAD = "INVALID_PAYLOAD"
    NOT_OFFERED = "NOT_OFFERED"
    """The question does not take this sort of answer."""
    CONFLICT = "conflict"
    """An interrupt was settled with something else."""
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an input was refused; nothing was changed. `ids` are the interrupts or calls it is about.

    `path` is where in the payload (a JSON pointer), `allowed` what would be right.
    """

    code: Code
    ids: tuple[str, ...] = ()
    path: str | None = None
    allowed: str = ""
    ok: bool = field(default=False, init=False)

    def event(self) -> RunError:
        """The event that tells the client."""
        about = f" {', '.join(self.ids)}" if self.ids else ""
        at = f" at {self.path or '/'}" if self.path is not None else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return RunError(message=f"{self.code.value}:{about}{at}{allowed}", code=self.code.value)


@dataclass(frozen=True, slots=True)
class Plan:
    """What an input asks for: one batch of `answers` that lets `run_id` go on, once; None for a run of its own.

    `replayed`: it was taken before, and there is nothing to do.
    """

    run_id: str | None = None
    answers: tuple[AnswerTo, ...] = ()
    replayed: bool = False
    warnings: tuple[str, ...] = ()
    ok: bool = field(default=True, init=False)


@dataclass(frozen=True, slots=True)
class Thread:
    """What is known of a thread: its latest interrupted run with the questions of its last pause, and the time.

    `others` are the records of what else a request names.
    """

    id: str
    now: datetime
    run: RunRecord | None = None
    asked: tuple[InterruptRecord, ...] = ()
    others: tuple[InterruptRecord, ...] = ()

    @property
    def still_open(self) -> tuple[InterruptRecord, ...]:
        """The questions that wait for an entry, or for a tool message."""
        return tuple(one for one in self.asked if one.state is Settlement.OPEN)

    @property
    def interrupted_ids(self) -> frozenset[str]:
        """The AG-UI runs that have ended interrupted; not those in which answers to the last pause came."""
        known = self.run.protocol_ids if self.run is not None else ()
        return frozenset(known) - self.resumed_ids

    @property
    def resumed_ids(self) -> frozenset[str]:
        """The AG-UI runs in which answers to the last pause came."""
        answers = [one.resolution.answer for one in self.asked if one.resolution is not None]
        return frozenset(one.protocol_id for one in answers if one is not None and one.protocol_id)


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal: Refusal = refusal


def plan(request: RunAgentInput, thread: Thread, policy: Policy = SPEC_1_0) -> Plan | Refusal:
    """The one batch that an input asks for, or why it is refused. Pure: nothing is sent, nothing changes."""
    try:
        return _Planning(request, thread, policy).plan()
    except _Refused as refused:
        return refused.refusal


class _Planning:
    def __init__(self, request: RunAgentInput, thread: Thread, policy: Policy) -> None:
        self.request, self.thread, self.policy = request, thread, policy
        self.warnings: list[str] = []
        self.run_id: str | None = thread.run.id if thread.run is not None else None

    def plan(self) -> Plan:
        try:
            self.warnings += version_warnings(self.request.protocol_version)
        except InvalidInput as fault:
            raise _Refused(Refusal(Code.UNSUPPORTED_VERSION, allowed=fault.allowed)) from None
        named = self._named(self.request.resume or ())
        fresh = self._fresh(named)
        present = {one.id for one in self.thread.asked}
        replays = bool(named) and not fresh
        if replays and (present.isdisjoint(one.id for one, _ in named) or not self.thread.still_open):
            return self._replayed(named[0][0].run_id)
        calls = [one for one in self.thread.still_open if is_frontend(one.interrupt)]
        questions = [one for one in self.thread.still_open if not is_frontend(one.interrupt)]
        if not named and not questions and not calls:
            if self.request.run_id in self.thread.resumed_ids:
                return self._replayed(self.run_id)
            return Plan(warnings=tuple(self.warnings))
        if self.request.run_id in self.thread.interrupted_ids:
            raise _Refused(Refusal(Code.RUN_ID_REUSED, (self.request.run_id,)))
        self._cover(questions, named)
        answers = (*(self._answer(one, entry) for one, entry in fresh), *self._complete(calls))
        return Plan(self.run_id, tuple(filter(None, answers)), warnings=tuple(self.warnings))

    def _replayed(self, run_id: str | None) -> Plan:
        return Plan(run_id, replayed=True, warnings=tuple(self.warnings))

    def _named(self, entries: Sequence[ResumeEntry]) -> list[tuple[InterruptRecord, ResumeEntry]]:
        """The questions that the entries are about; what is open in another run of the thread is not meant."""
        ids = [one.interrupt_id for one in entries]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            raise _Refused(Refusal(Code.DUPLICATE_INTERRUPT_ID, tuple(twice)))
        known = {wire_id(one): one for one in (*self.thread.others, *self.thread.asked)}
        elsewhere = [one for one in ids if one in known and known[one].session_id != self.thread.id]
        if elsewhere:
            raise _Refused(Refusal(Code.WRONG_THREAD, tuple(elsewhere)))
        mine = {one.id for one in self.thread.asked}
        known = {
            name: one for name, one in known.items() if one.state is not Settlement.OPEN or one.id in mine
        }
        unknown = [one for one in ids if one not in known]
        if unknown and (self.policy.unknown is Unknowns.REFUSE or len(unknown) == len(ids)):
            raise _Refused(Refusal(Code.UNKNOWN_INTERRUPT_ID, tuple(unknown)))
        self.warnings += [f"interrupt {one!r} is not known; its entry was dropped" for one in unknown]
        return [(known[one.interrupt_id], one) for one in entries if one.interrupt_id in known]

    def _fresh(
        self, named: Sequence[tuple[InterruptRecord, ResumeEntry]]
    ) -> list[tuple[InterruptRecord, ResumeEntry]]:
        """The entries about open questions; the others must say what was said before."""
        for one, entry in named:
            if one.state is Settlement.EXPIRED:
                self._expired(entry)
            elif one.state is not Settlement.OPEN and not says_the_same(one, entry):
                raise _Refused(Refusal(Code.CONFLICT, (entry.interrupt_id,)))
        return [(one, entry) for one, entry in named if one.state is Settlement.OPEN]

    def _cover(
        self, questions: Sequence[InterruptRecord], named: Sequence[tuple[InterruptRecord, ResumeEntry]]
    ) -> None:
        answered = {one.id for one, _ in named}
        missing = tuple(wire_id(one) for one in questions if one.id not in answered)
        if missing:
            raise _Refused(Refusal(Code.PARTIAL_RESUME if named else Code.PENDING_INTERRUPTS, missing))

    def _answer(self, record: InterruptRecord, entry: ResumeEntry) -> AnswerTo | None:
        validate = self._checks(foreign_of(record.interrupt), entry)
        if record.deadline is not None and record.deadline <= self.thread.now:
            self._expired(entry)
            if AnswerKind.CANCEL not in record.interrupt.offered:  # its expiry ends it all the same
                return None
        try:
            answer = answer_of(record, entry, self.request.run_id, validate=validate)
        except Fault as fault:
            code = Code.INVALID_PAYLOAD if fault.is_offered else Code.NOT_OFFERED
            raise _Refused(Refusal(code, (entry.interrupt_id,), fault.path, fault.allowed)) from None
        return AnswerTo(record.id, answer, seen=record.digest)

    def _checks(self, foreign: Interrupt | None, entry: ResumeEntry) -> bool:
        """Whether the payload is held against the schema of another agent's interrupt; warns of what cannot be used."""
        if foreign is None:
            return True
        if foreign.expires_at is not None and deadline_of(foreign) is None:
            self.warnings.append(f"expiresAt of {foreign.id!r} is no date; it does not expire")
        if not self.policy.validate or foreign.response_schema is None:
            return False
        usable = can_check(foreign.response_schema, entry.payload)
        if not usable:
            self.warnings.append(
                f"responseSchema of {foreign.id!r} cannot be used; no payload is held against it"
            )
        return usable

    def _expired(self, entry: ResumeEntry) -> None:
        if entry.status is Status.RESOLVED or not self.policy.cancel_expired:
            raise _Refused(Refusal(Code.INTERRUPT_EXPIRED, (entry.interrupt_id,)))

    def _complete(self, calls: Sequence[InterruptRecord]) -> list[AnswerTo]:
        """The results of the client's own calls, by its tool messages: all of them, each once."""
        found = {
            one.id: message_answers(self.request.messages, one.interrupt.call_id or "", self.request.run_id)
            for one in calls
        }
        names = {one.id: one.interrupt.call_id or one.id for one in calls}
        if missing := tuple(names[one] for one, said in found.items() if not said):
            raise _Refused(Refusal(Code.PENDING_TOOL_CALLS, missing))
        if twice := tuple(names[one] for one, said in found.items() if len(said) > 1):
            raise _Refused(Refusal(Code.CONFLICT, twice))
        return [AnswerTo(one.id, found[one.id][0], seen=one.digest) for one in calls]
