"""What requests carry: the bodies of the API, read as strictly as everything that comes from outside."""

from typing import Any, ClassVar, Final, TypeVar

from pydantic import Field, InstanceOf, StrictBool, StrictInt

from ..core.access import ApiRole
from ..core.answers import Answer, Principal
from ..core.batches import AnswerTo
from ..core.fields import Id, Json, JsonObject, Name, Text
from ..core.limits import check_count
from ..core.records import HistoryEntry, InterruptRecord, RunRecord
from ..core.shape import Model
from ..errors import InvalidInput

M = TypeVar("M", bound=Model)

MOST_ANSWERS: Final = 500


class AnswerBody(Model):
    """An answer: `seen` is the digest of the question that was shown, `op` names the operation for repeats."""

    answer: InstanceOf[Answer]
    seen: Text | None = None
    op: Id | None = None


class BatchItem(AnswerBody):
    """One answer of a batch."""

    interrupt_id: Id


class BatchBody(Model):
    """Several answers, each with an outcome of its own."""

    answers: tuple[BatchItem, ...]

    def items(self) -> list[AnswerTo]:
        """The answers as the broker takes them. Raises `InvalidInput` for too many."""
        check_count("answers", len(self.answers), MOST_ANSWERS)
        return [AnswerTo(one.interrupt_id, one.answer, one.seen, one.op) for one in self.answers]


class CompleteBody(Model):
    """The result of a job done elsewhere: `to` is the interrupt's id, or the token that its call was given.

    Who shows a token of the job leaves `to` out.
    """

    to: Text | None = None
    value: Json
    op: Id | None = None


class FailBody(Model):
    """That a job done elsewhere has failed; as `CompleteBody`."""

    to: Text | None = None
    error: Text
    op: Id | None = None


class StartBody(Model):
    """A new run. With a `key`, the same start again is the same run."""

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"input"})

    agent: Name
    session: Id
    input: Json = None
    key: Id | None = None
    queue: Name = "agents"
    build: Name | None = None
    priority: StrictInt = 0
    metadata: JsonObject = Field(default_factory=dict)
    protocol_id: Id | None = None


class WithdrawBody(Model):
    """A run's open questions are taken back: those of one pause (`seq`), else of the present one."""

    seq: StrictInt | None = None
    reason: Text = ""
    superseded: StrictBool = False
    op: Id | None = None


class RequeueBody(Model):
    """A dead run is sent back: to another queue where one is named; `fence` says which death it is about."""

    queue: Name | None = None
    fence: StrictInt | None = None


class KeyBody(Model):
    """A new API key for somebody."""

    principal: Principal
    role: ApiRole
    expires_in_ms: StrictInt | None = None
    note: Text | None = None


class InterruptPage(Model):
    """One page of open interrupts; `cursor` goes on from here, absent at the end."""

    items: tuple[InterruptRecord, ...]
    cursor: str | None = None
    looked_at: StrictInt = 0


class RunList(Model):
    """Some runs."""

    items: tuple[RunRecord, ...]


class HistoryPage(Model):
    """Some of a session's history, the oldest first; `next` is the place to go on from, absent at the end."""

    items: tuple[HistoryEntry, ...]
    next: StrictInt | None = None


REQUESTS: Final = (
    AnswerBody, BatchItem, BatchBody, CompleteBody, FailBody, StartBody, WithdrawBody, RequeueBody, KeyBody,
)  # fmt: skip
LISTS: Final = (InterruptPage, RunList, HistoryPage)


def read(kind: type[M], sent: Any, *, op: str | None = None) -> M:
    """The body of a request. Raises `InvalidInput`, also for a field that it does not know.

    `op` is what an Idempotency-Key stands for; the body names it or the header does.
    """
    if not isinstance(sent, dict):
        raise InvalidInput("body", "is no object", f"an object with {_allowed(kind)}")
    body = kind.from_json(sent)
    _known(body, "")
    if op is None:
        return body
    name = "key" if "key" in kind.model_fields else "op"
    if getattr(body, name, None) is not None:
        raise InvalidInput(name, "is given beside the header Idempotency-Key", "one of the two")
    return body.model_copy(update={name: op})


def _known(body: Model, place: str) -> None:
    """Raises `InvalidInput` for a field of another version: who sends it means something that is not understood."""
    for name in body.unknown:
        raise InvalidInput(f"{place}{name}", "is not known here", _allowed(type(body)))
    if isinstance(body, BatchBody):
        for n, item in enumerate(body.answers):
            _known(item, f"answers[{n}].")


def _allowed(kind: type[Model]) -> str:
    return ", ".join(name for name in kind.model_fields if name != "unknown")
