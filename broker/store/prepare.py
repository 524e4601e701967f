"""From what callers say to what scripts take: suspensions and answers, checked whole before anything is sent.

Pure functions; the only state is in their arguments. Ids and operation ids are derived here, so that a repeat of the
same call is the same operation.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from ..core.answers import Answer, AnswerKind, Cancel, Edit, Fail, Principal, PrincipalKind, Reject, Verdict
from ..core.digest import changed_paths, content_digest
from ..core.ids import SEPARATOR, interrupt_id
from ..core.kinds import ScheduledPause
from ..core.limits import check_id, check_json
from ..core.models import InputRecord, Interrupt, InterruptState, OnExpiry, OnMissed
from ..core.outcomes import Invalid
from ..core.policy import approved_digest, check_suspension, expiry, validate_answer
from ..core.records import InterruptRecord
from ..core.settings import Settings
from ..core.states import Mode
from ..core.wire import encode
from ..errors import InvalidInput
from .commands.address import Address
from .commands.answers import Said
from .commands.pauses import Pause, Question
from .commands.runs import Place, Token
from .keys import Pool

EXPIRY_POLICY = Principal(id="policy:expiry", kind=PrincipalKind.SERVICE, verified=True)
"""Who a default answer is from."""
REASON = 1000
"""How many characters of a reason the history keeps; the whole is in the verdict."""


NO_INPUT = b""
"""A run that is started with nothing has no record of that."""


def input_bytes(
    value: object, metadata: dict[str, object] | None, settings: Settings, *, protocol_id: str | None = None
) -> bytes:
    """What a run is started with, as stored. Pydantic models are taken by their JSON form."""
    if value is None and not metadata and protocol_id is None:
        return NO_INPUT
    dump = getattr(value, "model_dump", None)
    plain = dump(mode="json") if callable(dump) else value
    ids = () if protocol_id is None else (check_id("protocol_id", protocol_id),)
    record = InputRecord(input=check_json("input", plain), metadata=metadata or {}, protocol_ids=ids)
    return record.to_bytes(most=settings.limits.record_bytes)


def point(run: str, seq: int, questions: Sequence[Question]) -> tuple[str, str]:
    """The operation id of a suspension (its point), and the digest of its content."""
    calls = sorted(f"{q.call or n}={q.action}" for n, q in enumerate(questions))
    body = SEPARATOR.join((run, str(seq), *calls))
    content = SEPARATOR.join(q.id for q in questions)
    return f"sus-{content_digest(body.encode())[:32]}", content_digest(content.encode())


def pause(
    namespace: str,
    place: Place,
    seq: int,
    state: InterruptState,
    interrupts: Sequence[Interrupt],
    settings: Settings,
    *,
    mode: Mode = Mode.ALL,
    token: Token | None = None,
    instead: bool = False,
    keep: Sequence[str] = (),
    not_after: int = 0,
    protocol_ids: Sequence[str] = (),
    traceparent: str | None = None,
) -> Pause:
    """A suspension, checked whole. Raises `InvalidInput` that names the field, `MissingExtra` for a schema.

    `protocol_ids` are the runs of a protocol that led here; the latest are kept with each question. `traceparent` is
    the trace of a question that brings none of its own.
    """
    state, found = (
        (state, ())
        if keep and not interrupts
        else check_suspension(state, interrupts, limits=settings.limits)
    )
    if protocol_ids:
        along = tuple(protocol_ids[-settings.limits.labels :])
        found = tuple(one.model_copy(update={"protocol_ids": along}) for one in found)
    if traceparent is not None:
        found = tuple(
            one if one.traceparent else one.model_copy(update={"traceparent": traceparent}) for one in found
        )
    questions = tuple(_question(namespace, place, seq, n, one, settings) for n, one in enumerate(found))
    ids = [q.id for q in questions]
    if len(set(ids)) != len(ids):
        raise InvalidInput(
            "interrupts", "holds the same question twice", "questions that differ, or call ids that do"
        )
    op, digest = point(place.run, seq, questions)
    return Pause(
        place=place, op=op, digest=digest, seq=seq, state=state.to_bytes(most=settings.limits.state_bytes),
        questions=questions, not_after=not_after, longest=settings.keep_settled, mode=mode, token=token,
        replace=instead, keep=tuple(keep),
    )  # fmt: skip


def _question(namespace: str, place: Place, seq: int, n: int, one: Interrupt, settings: Settings) -> Question:
    said = one.to_wire()  # walked once, for the digest and for the record
    digest = Interrupt.digest_of(said)
    identity = interrupt_id(
        namespace=namespace, session=place.session, run_id=place.run, seq=seq, agent_path=one.agent_path,
        call_key=one.call_id or str(n), kind_type=one.kind.type, content_digest=digest,
    )  # fmt: skip
    when, ms = expiry(one, settings.deadline)
    deadline = {"never": "", "in": f"+{ms * 1000}", "at": str(ms * 1000)}[when]
    default = ("", "", "", b"")
    if one.at_expiry is OnExpiry.DEFAULT and one.default_answer is not None:
        at_end = verdict_of(
            one, identity, one.default_answer, EXPIRY_POLICY, op=f"default:{identity}", seen=None
        )
        default = (at_end.kind.value, at_end.mark, at_end.action, at_end.verdict)
    record = encode(said, most=settings.limits.record_bytes, field="Interrupt")
    return Question(
        id=identity, record=record, kind=one.kind.type, digest=digest,
        offers=",".join(one.offered), expiry=one.at_expiry.value, audience=one.addressed_to.value, deadline=deadline,
        tool=one.action.tool if one.action else "", call=one.call_id or "",
        action=one.action.digest if one.action else "", labels=" ".join(one.labels),
        label=one.kind.label if isinstance(one.kind, ScheduledPause) else "",
        beat=str(one.heartbeat // timedelta(microseconds=1)) if one.heartbeat else "",
        missed=(one.on_missed or OnMissed.FAIL).value if one.heartbeat else "",
        early="" if one.response_schema is not None or AnswerKind.EDIT in one.offered else "*", default=default,
    )  # fmt: skip


def with_early(found: Pause, early: Sequence[tuple[str, str, Verdict | None]]) -> Pause:
    """The pause with each early answer (call, digest, verdict) held against its question.

    The script is told which digests fit, which do not (`!digest`), and what an edit would let run (`digest=action`).
    """
    marks: dict[str, list[str]] = {}
    for call, mark, verdict in early:
        question = next(q for q in found.questions if q.call == call)
        interrupt = Interrupt.from_bytes(question.record)
        if verdict is None or validate_answer(interrupt, verdict.answer) is not None:
            told = f"!{mark}"
        elif isinstance(verdict.answer, Edit):
            told = f"{mark}={approved_digest(interrupt, verdict.answer)}"
        else:
            told = mark
        marks.setdefault(call, []).append(told)
    questions = tuple(
        q._replace(early=",".join(marks[q.call])) if q.call in marks else q for q in found.questions
    )
    return found._replace(questions=questions)


def verdict_of(
    interrupt: Interrupt | None,
    identity: str,
    answer: Answer,
    by: Principal,
    *,
    op: str | None,
    seen: str | None,
) -> Said:
    """An answer as the script takes it. Without an `op` of the caller's it is derived, so that a repeat is one."""
    if op is not None:
        check_op(op)
    check_seen(seen)
    op = op or answer_op(identity, answer, by, seen)
    changed: tuple[str, ...] = ()
    action = approved_digest(interrupt, answer) if interrupt else None
    if isinstance(answer, Edit) and interrupt is not None and interrupt.action is not None:
        changed = changed_paths(interrupt.action.arguments, answer.arguments)
    verdict = Verdict(
        interrupt_id=identity, answer=answer, by=by, op=op, seen=seen, action_digest=action, changed=changed
    ).to_bytes()  # fmt: skip
    return Said(
        op,
        answer.kind,
        content_digest(verdict),
        verdict,
        by.to_bytes(),
        seen or "",
        action or "",
        _told(answer),
    )


def _told(answer: Answer) -> str:
    """An answer with the reason that came with it, for the history; empty where there is none."""
    match answer:
        case Reject(reason=reason) | Cancel(reason=str() as reason) | Fail(error=reason):
            return f"{answer.kind}: {reason[:REASON]}"
        case _:
            return ""


def answer_op(about: str, answer: Answer, by: Principal, seen: str | None) -> str:
    """The operation id of an answer that brings none: the same party saying the same about the same is one."""
    check_seen(seen)
    parts = SEPARATOR.join((about, by.id, by.kind, seen or "")).encode()
    return f"ans-{content_digest(parts + answer.to_bytes())[:32]}"


def check_seen(seen: str | None) -> None:
    """Nothing, where it may be the digest of what was shown. Raises `InvalidInput`."""
    if seen is not None and seen != "":
        check_id("seen", seen)


def check_op(op: str) -> str:
    """An operation id of the caller's: an id without white space."""
    if any(char.isspace() for char in check_id("op", op)):
        raise InvalidInput("op", "holds white space", "an id without white space")
    return op


def said(
    record: InterruptRecord, answer: Answer, by: Principal, *, op: str | None, seen: str | None
) -> Said | Invalid:
    """An answer held against its question: kind, edit, response schema, digest; or what is wrong with it."""
    wrong = validate_answer(record.interrupt, answer)
    if wrong is not None:
        return wrong
    found = verdict_of(record.interrupt, record.id, answer, by, op=op, seen=seen)
    return found._replace(asked_at=record.opened_at.timestamp(), traceparent=record.interrupt.traceparent)


def with_siblings(a: Address, others: Sequence[Address]) -> Address:
    """The address with those of the other interrupts of its suspension."""
    return a._replace(siblings=tuple(others))


def place(
    run: str, session: str, pool: Pool, *, priority: int = 0, data: bytes = b"", by: Principal | None = None
) -> Place:
    """Where a run belongs, checked."""
    check_id("session", session)
    if not -1000 <= priority <= 1000:  # noqa: PLR2004 - the scores of the ready set hold this much
        raise InvalidInput("priority", "is out of range", "-1000 to 1000")
    return Place(run, session, pool, priority, data, by.to_bytes() if by else b"")


def at_run(found: Place, run: str) -> Place:
    """The place of a run with a known id."""
    return replace(found, run=check_id("run_id", run))


def start_op(found: Place) -> str:
    """The operation id of a start under a key: the same key with other content is another operation."""
    parts = (found.run, str(found.pool), str(found.priority))
    return f"start-{content_digest(SEPARATOR.join(parts).encode() + found.input)[:32]}"


def back_off(tries: int, settings: Settings, jitter: float) -> timedelta:
    """How long a failed run waits: doubled at each attempt, `jitter` (0 to 1) takes away up to half."""
    span = min(settings.backoff_first * float(2 ** min(max(tries - 1, 0), 30)), settings.backoff_most)
    return span * (1 - jitter / 2)
