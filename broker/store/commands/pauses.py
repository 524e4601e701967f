"""One pause of one run as a value: the suspension with its interrupts."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from ...core.outcomes import Accepted, Conflict, Invalid, Outcome, Replayed
from ...core.states import Mode
from ...errors import StaleLease
from ..keys import Partition
from .address import Address, interrupt_keys, run_keys
from .runs import Place, Token, refusal
from .values import (
    About,
    Arg,
    Command,
    Item,
    Recheck,
    Reply,
    StaleAddress,
    brief,
    micros,
    packed_record,
    packed_texts,
    text,
)


class Question(NamedTuple):
    """One interrupt as the script wants it: what it reads as plain fields, and the whole as opaque bytes.

    `deadline`: empty for never, `+n` for n microseconds from now, or an absolute time in microseconds.
    `beat`: how often its job has to tell that it runs, in microseconds; `missed`: what one that is missed does.
    `early`: digests of early verdicts that passed the response schema, `!digest` for those that did not, `*` where
    there is no schema. `default`: kind, mark, action digest and bytes of the default verdict.
    """

    def __repr__(self) -> str:
        return brief(self)

    id: str
    record: bytes
    kind: str
    digest: str
    offers: str
    expiry: str
    audience: str
    deadline: str = ""
    tool: str = ""
    call: str = ""
    action: str = ""
    labels: str = ""
    label: str = ""
    beat: str = ""
    missed: str = ""
    early: str = "*"
    default: tuple[str, str, str, bytes] = ("", "", "", b"")

    def args(self) -> tuple[Arg, ...]:
        """The interrupt's part of the script's arguments, in its order."""
        kind, mark, action, verdict = self.default
        fields = {
            "kind": self.kind, "tool": self.tool, "call": self.call, "action": self.action, "digest": self.digest,
            "deadline": self.deadline, "expiry": self.expiry, "audience": self.audience, "offers": self.offers,
            "labels": self.labels, "label": self.label, "default_kind": kind, "default_mark": mark,
            "default_action": action, "beat": self.beat, "missed": self.missed,
        }  # fmt: skip
        return (self.id, self.early, verdict, self.record, packed_record(fields))


class Pause(NamedTuple):
    """A whole suspension. `token` is None for a run that is not leased; `old` are the interrupts it had before."""

    def __repr__(self) -> str:
        return brief(self)

    place: Place
    op: str
    digest: str
    seq: int
    state: bytes
    questions: tuple[Question, ...]
    not_after: int
    longest: timedelta
    mode: Mode = Mode.ALL
    token: Token | None = None
    replace: bool = False
    keep: tuple[str, ...] = ()
    old: tuple[Address, ...] = ()


def suspend(p: Partition, pause: Pause) -> Command[Outcome]:
    """Stores the pause and asks its questions, all or nothing."""
    place, token = pause.place, pause.token
    ids = tuple(q.id for q in pause.questions)

    def decode(_: int, reply: Reply) -> Outcome:
        word = text(reply[0])
        if word in ("accepted", "replayed"):
            kind = Accepted if word == "accepted" else Replayed
            return kind(run_id=place.run, session_id=place.session, interrupt_ids=ids)
        if word == "stale_lease":
            raise StaleLease(place.run)
        if word == "invalid" and text(reply[1]) == "expires_at":
            return Invalid(
                field="expires_at",
                problem="is not in the future",
                allowed="a time after now, by the server's clock",
            )
        if word == "conflict" and text(reply[1]) == "digest":
            return Conflict(reason="this point of the run was suspended with other content")
        return refusal(reply, place.run)

    args: list[Arg] = [packed_texts(_fields(pause)), place.input, pause.state]
    for q in pause.questions:
        args.extend(q.args())
    about = About(place.session, place.run, ids, pause.op, token.fence if token else None)
    item = Item(tuple(_keys(p, pause)), tuple(args), about)
    return Command("suspend", p, (item,), decode, oom=token is not None, confirm=True)


def _keys(p: Partition, pause: Pause) -> list[str]:
    place, pool = pause.place, pause.place.pool
    keys = run_keys(p, place.run, place.session, pool)
    keys += [p.key("interrupts"), *(p.key(kind, place.session) for kind in ("early", "aliases"))]
    keys += [p.key(kind, place.run) for kind in ("state", "input")]
    for old in pause.old:
        keys += interrupt_keys(p, old, decider=False)
    for q in pause.questions:
        a = Address(q.id, place.run, place.session, pool, q.kind, q.tool, q.audience, q.expiry)
        keys += [*interrupt_keys(p, a, decider=False), p.key("question", q.id), p.key("default", q.id)]
    return keys


def _fields(pause: Pause) -> dict[str, Arg]:
    place, pool, token = pause.place, pause.place.pool, pause.token
    return {
        "run": place.run, "session": place.session, "queue": pool.queue, "agent": pool.agent, "build": pool.build,
        "priority": place.priority, "op": pause.op, "digest": pause.digest, "seq": pause.seq, "mode": pause.mode,
        "replace": int(pause.replace), "fence": token.fence if token else "", "nonce": token.nonce if token else "",
        "not_after": pause.not_after, "longest": micros(pause.longest), "by": place.by, "keep": " ".join(pause.keep),
        "count": len(pause.questions),
    }  # fmt: skip


def with_old(pause: Pause, old: Sequence[Address]) -> Pause:
    """The pause with the addresses of the interrupts its run has had so far."""
    return pause._replace(old=tuple(old))


__all__ = ["Pause", "Question", "Recheck", "StaleAddress", "suspend", "with_old"]
