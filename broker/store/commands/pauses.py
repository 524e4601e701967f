"""One pause of one run as a value: the suspension with its interrupts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from ...core.outcomes import Accepted, Conflict, Invalid, Outcome, Replayed
from ...core.states import Mode
from ...errors import StaleLease
from ..keys import Partition
from .address import Address, interrupt_keys, run_keys
from .runs import Place, Token, refusal
from .values import About, Arg, Command, Item, Recheck, Reply, StaleAddress, micros, text


@dataclass(frozen=True, slots=True)
class Question:
    """One interrupt as the script wants it: what it reads as plain fields, and the whole as opaque bytes.

    `deadline`: empty for never, `+n` for n microseconds from now, or an absolute time in microseconds.
    `early`: digests of early verdicts that passed the response schema, `!digest` for those that did not, `*` where
    there is no schema. `default`: kind, mark, action digest and bytes of the default verdict.
    """

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
    early: str = "*"
    default: tuple[str, str, str, bytes] = ("", "", "", b"")

    def args(self) -> tuple[Arg, ...]:
        """The interrupt's part of the script's arguments, in its order."""
        kind, mark, action, verdict = self.default
        return (self.id, self.kind, self.tool, self.call, self.action, self.digest, self.deadline, self.expiry,
                self.audience, self.offers, self.labels, self.early, verdict, kind, mark, action,
                self.record)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pause:
    """A whole suspension. `token` is None for a run that is not leased; `old` are the interrupts it had before."""

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
    old: tuple[Address, ...] = field(default=())


def suspend(p: Partition, pause: Pause) -> Command[Outcome]:
    """Stores the pause and asks its questions, all or nothing."""
    place, pool, token = pause.place, pause.place.pool, pause.token
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

    keys = run_keys(p, place.run, place.session, pool)
    keys += [p.key("interrupts"), *(p.key(kind, place.session) for kind in ("early", "aliases"))]
    keys += [p.key(kind, place.run) for kind in ("state", "input")]
    for old in pause.old:
        keys += interrupt_keys(p, old, decider=False)
    for q in pause.questions:
        a = Address(q.id, place.run, place.session, pool, q.kind, q.tool, q.audience, q.expiry)
        keys += [*interrupt_keys(p, a, decider=False), p.key("question", q.id), p.key("default", q.id)]
    args: list[Arg] = [
        place.run, place.session, pool.queue, pool.agent, pool.build, place.priority, pause.op, pause.digest, pause.seq,
        pause.mode, int(pause.replace), token.fence if token else 0, token.nonce if token else "", pause.not_after,
        micros(pause.longest), place.by, place.input, pause.state, len(pause.keep), *pause.keep, len(pause.questions),
    ]  # fmt: skip
    for q in pause.questions:
        args.extend(q.args())
    about = About(place.session, place.run, ids, pause.op, token.fence if token else None)
    item = Item(tuple(keys), tuple(args), about)
    return Command("suspend", p, (item,), decode, oom=token is not None, confirm=True)


def with_old(pause: Pause, old: Sequence[Address]) -> Pause:
    """The pause with the addresses of the interrupts its run has had so far."""
    return replace(pause, old=tuple(old))


__all__ = ["Pause", "Question", "Recheck", "StaleAddress", "suspend", "with_old"]
