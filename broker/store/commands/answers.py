"""What parties say about interrupts, and what they are told: answers by interrupt id or by call, and expiry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from ...core.answers import AnswerKind, Principal
from ...core.fields import from_ms
from ...core.outcomes import (
    Accepted,
    AlreadyDecided,
    Conflict,
    Expired,
    Invalid,
    Outcome,
    Parked,
    Replayed,
    Superseded,
    Unknown,
    Winner,
    Withdrawn,
)
from ...core.states import Settlement
from ..keys import Partition, Pool
from .address import Address, run_keys, settle_keys
from .values import About, Command, Item, Reply, brief, micros, text


class Said(NamedTuple):
    """One answer as the script wants it. `action` is the digest of what may run when the answer edits it.

    `told` is what the history says of it: empty for its kind alone. `asked_at` (Unix seconds) and `traceparent` are the
    question's, for those who watch.
    """

    def __repr__(self) -> str:
        return brief(self)

    op: str
    kind: AnswerKind
    mark: str
    verdict: bytes
    by: bytes
    seen: str = ""
    action: str = ""
    told: str = ""
    asked_at: float | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class CallAddress:
    """A call named by its session and call id, and by run and sequence where the answerer knows them.

    `slot` is where the verdict of an early answer lies; `known` are the interrupts the call id has stood for so far.
    """

    session: str
    call: str
    slot: str
    run: str = ""
    seq: int = 0
    pool: Pool | None = None
    known: tuple[Address, ...] = ()


def moment(micro: bytes | str) -> datetime | None:
    """A server time in microseconds as an aware datetime in whole milliseconds; None where there is none."""
    return from_ms(int(micro) // 1000) if micro else None


def instant(micro: bytes | str) -> datetime:
    """As `moment`, for a time that is always set."""
    return from_ms(int(micro or 0) // 1000)


def principal(data: bytes) -> Principal | None:
    """Who did it, as stored; None where nobody is named."""
    return Principal.from_bytes(data) if data else None


def told(reply: Reply, interrupt: str, address: Address | None = None) -> Outcome:
    """What the one who answered is told."""
    word, *rest = reply
    match text(word), rest:
        case ("accepted" | "replayed") as code, [found, state, _] if text(state) != "parked":
            kind = Accepted if code == "accepted" else Replayed
            ids = (text(found) or interrupt,)
            if address is None:
                return kind(interrupt_ids=ids)
            return kind(run_id=address.run, session_id=address.session, interrupt_ids=ids)
        case "replayed", _:
            return Replayed()
        case "parked", [until]:
            return Parked(until=moment(until))
        case "invalid", [field, allowed]:
            return _invalid(text(field), text(allowed))
        case "settled", [state, at, answer, by, op, *_]:
            return _settled(text(state), moment(at), text(answer), principal(by), text(op))
        case "conflict", _:
            return Conflict(
                reason="several interrupts of this session had that call id: name the run and its sequence"
            )
        case _:
            return Unknown(id=interrupt)


def _invalid(field: str, allowed: str) -> Outcome:
    if field == "answer":
        return Invalid(
            field=field,
            problem="is of a kind this interrupt does not offer",
            allowed=allowed.replace(",", ", "),
        )
    if field == "seen":
        return Invalid(field=field, problem="is not the digest of the question as it stands", allowed=allowed)
    return Invalid(field=field, problem="is in the past or further ahead than the server accepts",
                   allowed="a time after now, within the window of the namespace")  # fmt: skip


def _settled(state: str, at: datetime | None, answer: str, by: Principal | None, op: str) -> Outcome:
    match state:
        case Settlement.EXPIRED:
            return Expired(at=at)
        case Settlement.WITHDRAWN:
            return Withdrawn(by=by, at=at)
        case Settlement.SUPERSEDED:
            return Superseded(at=at)
        case _ if op.startswith("expire "):  # its policy's default answer: nobody was first
            return Expired(at=at)
        case _:
            kind = AnswerKind(answer) if answer in set(AnswerKind) else None
            return AlreadyDecided(winner=Winner(by=by, at=at, answer=kind, op=op))


def answer(p: Partition, pairs: Sequence[tuple[Address, Said]]) -> Command[Outcome]:
    """Answers to interrupts named by their ids, one outcome each."""
    items = tuple(
        Item(
            (*settle_keys(p, a, decider=True), p.key("unknown")),
            (
                a.interrupt,
                "",
                "",
                "",
                "",
                s.op,
                s.kind,
                s.mark,
                s.verdict,
                s.by,
                s.seen,
                s.action,
                "",
                0,
                0,
                s.told,
            ),
            About(a.session, a.run, (a.interrupt,), s.op, None, s.asked_at, s.traceparent),
        )
        for a, s in pairs
    )
    return Command(
        "answer", p, items, lambda n, reply: told(reply, pairs[n][0].interrupt, pairs[n][0]), confirm=True
    )


def heartbeat(p: Partition, a: Address) -> Command[Outcome]:
    """A job tells that it still runs."""
    keys = tuple(settle_keys(p, a, decider=False))
    about = About(a.session, a.run, (a.interrupt,))
    return Command(
        "heartbeat", p, (Item(keys, (a.interrupt,), about),), lambda _, reply: told(reply, a.interrupt, a)
    )


def answer_unknown(p: Partition, interrupt: str, said: Said, longest: timedelta) -> Command[Outcome]:
    """An answer to an interrupt nobody knows: told so, and told so again if it is sent again (rule 9)."""
    keys = (p.key("interrupt", interrupt), p.key("unknown"))
    args = (interrupt, "", "", "", "", said.op, said.kind, said.mark, said.verdict, said.by, said.seen, said.action, "",
            0, micros(longest), said.told)  # fmt: skip
    about = About(interrupts=(interrupt,), operation=said.op)
    return Command(
        "answer", p, (Item(keys, args, about),), lambda _, reply: told(reply, interrupt), confirm=True
    )


def answer_call(
    p: Partition, a: CallAddress, said: Said, *, not_after: int, longest: timedelta
) -> Command[Outcome]:
    """An answer to a call; kept when it comes before the question."""
    keys = [p.key(kind, a.session) for kind in ("aliases", "early", "history")]
    keys += [p.key(kind) for kind in ("retention", "unknown")] + [p.key("verdict", a.slot)]
    if a.run:
        keys += [p.key("run", a.run), p.key("calls", a.run)]
        if a.pool:
            keys += run_keys(p, a.run, a.session, a.pool)
    for one in a.known:
        keys += settle_keys(p, one, decider=True)
    args = ("", a.session, a.run, a.seq or "", a.call, said.op, said.kind, said.mark, said.verdict, said.by, said.seen,
            said.action, a.slot, not_after, micros(longest), said.told)  # fmt: skip
    found = {one.interrupt: one for one in a.known}

    def decode(_: int, reply: Reply) -> Outcome:
        at = found.get(text(reply[1])) if len(reply) > 1 else None
        return told(reply, at.interrupt if at else a.call, at)

    about = About(a.session, a.run, (), said.op, None, said.asked_at, said.traceparent)
    return Command("answer", p, (Item(tuple(keys), args, about),), decode, confirm=True)
