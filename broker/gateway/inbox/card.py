"""One question as its page shows it: what may be answered by whom, with which form, and what an edit changed."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from ...core.access import Scope
from ...core.answers import Answer, AnswerKind, Approve, Cancel, Complete, Edit, Fail, Reject, Respond
from ...core.kinds import ApprovalPending
from ...core.limits import JSON
from ...core.models import InterruptState
from ...core.outcomes import Invalid
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import InvalidInput
from ..identity import COMPLETING
from . import forms
from .forms import ABSENT, Field, Misread, Posted
from .visible import Change, changes


@dataclass(slots=True)
class Card:
    """What the page of one question shows. `banner` says what became of an answer just sent."""

    record: InterruptRecord
    scopes: Collection[Scope]
    banner: str = ""
    tone: str = "bad"
    opened: str = ""
    """The kind of answer whose form is open."""
    typed: dict[str, str] = field(default_factory=dict, repr=False)
    faults: dict[str, str] = field(default_factory=dict, repr=False)
    respond: Field | None = field(default=None, repr=False)
    complete: Field | None = field(default=None, repr=False)
    together: tuple[InterruptRecord, ...] = ()
    """The other questions of the same pause: the run waits for them too."""
    frozen: InterruptState | None = field(default=None, repr=False)
    seq: int = 0
    """The pause that the frozen state is of."""

    def __post_init__(self) -> None:
        one = self.record.interrupt
        if one.response_schema is not None:
            self.respond = self.respond or forms.form_of(one.response_schema, "payload")
            self.complete = self.complete or forms.form_of(one.response_schema, "value")

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self.record.state is Settlement.OPEN

    @property
    def offers(self) -> tuple[str, ...]:
        """The answers that this reader may give."""
        if not self.is_open:
            return ()
        return tuple(one for one in self.record.interrupt.offered if self._may(one))

    def _may(self, kind: AnswerKind) -> bool:
        if kind is AnswerKind.EDIT and self.record.interrupt.action is None:
            return False
        return (Scope.COMPLETE if kind in COMPLETING else Scope.ANSWER) in self.scopes

    @property
    def approve_word(self) -> str:
        """What the button says that lets the run go on."""
        one = self.record.interrupt
        return "Approve" if isinstance(one.kind, ApprovalPending) or one.action is not None else "Go on"

    @property
    def edited(self) -> list[Change]:
        """What the accepted answer changed of the arguments."""
        found, one = self.record.resolution, self.record.interrupt
        if found is None or not isinstance(found.answer, Edit) or one.action is None:
            return []
        return changes(one.action.arguments, found.answer.arguments)

    def answer(self, kind: str, posted: Posted) -> Answer | None:
        """The answer that a form says; None where it cannot be read, and the card says why."""
        self.opened = kind
        self.typed = {
            name: "".join(map(str, posted.getlist(name)[:1])).replace("\r\n", "\n") for name in _TEXTS
        }
        try:
            return self._answer(kind, posted)
        except Misread:
            self.banner = (
                "Some of it cannot be read. It is still open: correct what is marked and send it again."
            )
        except InvalidInput as fault:
            self.misfit(Invalid(field=fault.field, problem=fault.problem, allowed=fault.allowed))
        return None

    def _answer(self, kind: str, posted: Posted) -> Answer:
        text = {name: one.strip() or None for name, one in self.typed.items()}
        match kind:
            case AnswerKind.APPROVE:
                return Approve(note=text["note"])
            case AnswerKind.REJECT:
                return Reject(reason=self._needed("reason"))
            case AnswerKind.FAIL:
                return Fail(error=self._needed("error"))
            case AnswerKind.CANCEL:
                return Cancel(reason=text["reason"])
            case AnswerKind.EDIT:
                return Edit(arguments=self._json("arguments"), note=text["note"])
            case AnswerKind.RESPOND:
                return Respond(payload=self._value(self.respond, "payload", posted), note=text["note"])
            case AnswerKind.COMPLETE:
                return Complete(value=self._value(self.complete, "value", posted))
            case _:
                raise InvalidInput("kind", "is no answer", ", ".join(self.offers))

    def _needed(self, name: str) -> str:
        if not self.typed[name].strip():
            self.faults[name] = "This is needed: the agent is told."
            raise Misread
        return self.typed[name].strip()

    def _value(self, form: Field | None, name: str, posted: Posted) -> JSON:
        if form is not None:
            value = forms.read(form, posted)
            return None if value is ABSENT else value
        return self.typed[name] if self.typed["as"] == "text" else self._json(name)

    def _json(self, name: str) -> JSON:
        box = Field(name, "", "json", typed=[self.typed[name]])
        try:
            return forms.read(box, _Typed(self.typed))
        except Misread:
            self.faults[name] = box.fault
            raise

    def misfit(self, outcome: Invalid) -> None:
        """Says where an answer did not fit; the question is still open (F16)."""
        said = f"{outcome.problem}; allowed: {outcome.allowed}"
        self.banner = f"{outcome.field} {said}. It is still open: correct it and send it again."
        form = self.complete if self.opened == AnswerKind.COMPLETE else self.respond
        if form is None or not forms.mark(form, outcome.field, said):
            self.faults[outcome.field.partition(".")[0]] = said


_TEXTS: Final = ("note", "reason", "error", "payload", "value", "arguments", "as")


class _Typed(dict[str, str]):
    """Texts as the fields of a form."""

    def getlist(self, key: Any) -> list[Any]:
        """All values under one name."""
        return [self[key]]
