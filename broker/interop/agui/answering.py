"""From a resume entry to the broker's answer, and back: a no, nobody's answer and a time-out stay three things."""

from collections.abc import Sequence
from typing import Final

from ...core.answers import Answer, Approve, Cancel, Complete, Edit, Fail, Reject, Respond
from ...core.digest import canonical_json
from ...core.limits import JSON
from ...core.models import Audience
from ...core.policy import check_schema, misfit, validate_answer
from ...core.records import InterruptRecord
from ...errors import InvalidInput
from .asking import foreign_of, response_schema, takes_decision, wire_id
from .shapes import ResumeEntry, Status

_KEPT: Final = "agui"
"""Where an answer's metadata holds what its entry had beside the answer."""
_NO_REASON: Final = "declined"


class Fault(Exception):
    """What is wrong with the payload of an entry: where (a JSON pointer), and what would be right."""

    def __init__(self, path: str, allowed: str, *, is_offered: bool = True) -> None:
        super().__init__(path, allowed)
        self.path: str = path
        self.allowed: str = allowed
        self.is_offered: bool = is_offered


def answer_of(record: InterruptRecord, entry: ResumeEntry, run_id: str, *, validate: bool = True) -> Answer:
    """The answer that an entry stands for, held against its question. Raises `Fault`; nothing is sent.

    `{"approved": true}` approves, with `editedArgs` it edits (they replace all arguments), `{"approved": false}`
    rejects; other payloads answer a question or complete a job; `cancelled` cancels. What the entry has beside that is
    kept in the answer's metadata, and `run_id` as its protocol id. Nothing else ever approves.
    """
    found = _answer(record, entry, validate=validate)
    wrong = validate_answer(record.interrupt, found)
    if wrong is not None:
        raise Fault("", wrong.allowed, is_offered=False)
    plain = _rendered(found)
    kept = {
        name: value
        for name, value in entry.to_json().items()
        if name not in ("interruptId", "status") and (name not in plain or not _equal(value, plain[name]))
    }
    return found.model_copy(update={"metadata": {_KEPT: kept} if kept else {}, "protocol_id": run_id})


def _answer(record: InterruptRecord, entry: ResumeEntry, *, validate: bool) -> Answer:
    question, payload = record.interrupt, entry.payload
    if entry.status is Status.CANCELLED:
        return Cancel(payload=payload)
    foreign = foreign_of(question)
    schema = question.response_schema if foreign is None else foreign.response_schema
    if schema is not None and (validate or foreign is None):
        fault = misfit(schema, payload)
        if fault is not None:
            raise Fault("".join(f"/{_escaped(part)}" for part in fault.path), fault.rule)
    if question.addressed_to is Audience.COMPLETIONS:
        return Complete(value=payload)
    if takes_decision(question) and isinstance(payload, dict) and isinstance(payload.get("approved"), bool):
        return _decision(payload)
    if response_schema(question) is not None and takes_decision(question):
        raise Fault("/approved", "true or false")
    return Respond(payload=payload)


def can_check(schema: dict[str, JSON], payload: JSON) -> bool:
    """Whether a payload can be held against the schema of another agent, which nobody checked when it came."""
    try:
        check_schema(schema)
        misfit(schema, payload)
    except InvalidInput:
        return False
    return True


def _decision(payload: dict[str, JSON]) -> Answer:
    reason = payload.get("reason")
    if not payload["approved"]:
        return Reject(reason=reason if isinstance(reason, str) else _NO_REASON)
    if "editedArgs" not in payload:
        return Approve(note=reason if isinstance(reason, str) else None)
    if not isinstance(payload["editedArgs"], dict):
        raise Fault("/editedArgs", "an object with all arguments")
    return Edit(arguments=payload["editedArgs"], note=reason if isinstance(reason, str) else None)


def _escaped(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def entry_of(record: InterruptRecord) -> ResumeEntry | None:
    """The entry that would have settled a question so, payload and metadata as they came; None while it is open.

    What ended without an answer (expired, withdrawn, superseded) is `cancelled`.
    """
    resolution = record.resolution
    if resolution is None:
        return None
    plain: dict[str, JSON] = {"status": Status.CANCELLED.value}
    kept: dict[str, JSON] = {}
    if resolution.answer is not None:
        plain, kept = _rendered(resolution.answer), resolution.answer.metadata.get(_KEPT) or {}
    return ResumeEntry.from_json({"interruptId": wire_id(record), **plain, **kept})


def _rendered(answer: Answer) -> dict[str, JSON]:
    """What an answer says in AG-UI's words, by itself."""
    payload: JSON = None
    match answer:
        case Approve(note=note):
            payload = {"approved": True} | ({} if note is None else {"reason": note})
        case Edit(arguments=arguments, note=note):
            payload = {"approved": True, "editedArgs": arguments} | ({} if note is None else {"reason": note})
        case Reject(reason=reason):
            payload = {"approved": False} | ({} if reason == _NO_REASON else {"reason": reason})
        case Respond(payload=value) | Complete(value=value):
            payload = value
        case Fail(error=error):
            payload = {"error": error}
        case Cancel(payload=value):
            return {"status": "cancelled"} | ({} if value is None else {"payload": value})
        case _:
            return {"status": "cancelled"}
    return {"status": "resolved"} | ({} if payload is None else {"payload": payload})


def says_the_same(record: InterruptRecord, entry: ResumeEntry) -> bool:
    """Whether a settled question was settled with what this entry says; the order of keys is no matter."""
    stored = entry_of(record)
    return stored is not None and stored.status is entry.status and _equal(stored.payload, entry.payload)


def _equal(one: JSON, other: JSON) -> bool:
    return canonical_json(one) == canonical_json(other)


def message_answers(messages: Sequence[JSON], call_id: str, run_id: str) -> list[Answer]:
    """What tool messages say about a call, each thing once: its result, or by their `error` its failure."""
    found: list[Answer] = []
    for message in messages:
        if (
            not isinstance(message, dict)
            or message.get("role") != "tool"
            or message.get("toolCallId") != call_id
        ):
            continue
        content, error = message.get("content"), message.get("error")
        if isinstance(error, str):
            kept = {_KEPT: {"content": content}} if content else {}
            answer: Answer = Fail(error=error, metadata=kept, protocol_id=run_id)
        else:
            answer = Complete(value=content, protocol_id=run_id)
        if answer not in found:
            found.append(answer)
    return found
