"""From stored fields and bytes to records. What is not as we write it is reported with its key, never guessed."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from ...core.answers import Answer, Principal, Verdict
from ...core.digest import content_digest
from ...core.fields import EPOCH
from ...core.models import UNREADABLE, InputRecord, Interrupt, ResultRecord
from ...core.policy import approved_digest
from ...core.records import HistoryEntry, InterruptRecord, Resolution, RunRecord
from ...core.states import Mode, RunState, Settlement
from ...errors import Corrupt
from ..keys import Partition
from .address import early_identity, early_slot
from .answers import instant, principal
from .values import record, text, unpacked, usable

T = TypeVar("T")
M = TypeVar("M", InputRecord, ResultRecord)
Word = TypeVar("Word", bound=StrEnum)


class Fields:
    """The fields of one record, by their kind. A value that is none of ours raises `Corrupt` with the record's key."""

    def __init__(self, key: str, raw: dict[str, bytes]) -> None:
        self.key = key
        self.raw = raw

    def text(self, name: str) -> str:
        """A text, empty where it is not set."""
        value = self.raw.get(name)
        return value.decode("utf-8", "backslashreplace") if value else ""

    def number(self, name: str) -> int:
        """A number, 0 where it is not set."""
        return self._read(name, int) if self.raw.get(name) else 0

    def moment(self, name: str) -> datetime | None:
        """A time, None where it is not set."""
        return self._read(name, instant) if self.raw.get(name) else None

    def instant(self, name: str) -> datetime:
        """A time, 1970 where it is not set."""
        return self._read(name, instant) if self.raw.get(name) else EPOCH

    def word(self, name: str, words: type[Word]) -> Word:
        """One of the words of this release."""
        return self._read(name, words)

    def principal(self, name: str) -> Principal | None:
        """Who did it, None where nobody is named."""
        return principal(self.raw.get(name, b""))

    def _read(self, name: str, read: Callable[[str], T]) -> T:
        try:
            return read(self.text(name))
        except (ValueError, OverflowError, OSError):
            pass
        raise Corrupt(self.key, f"its field {name} is not as this release writes it")


def interrupt_record(
    p: Partition, interrupt: str, replies: Sequence[Any], row: dict[str, bytes] | None = None
) -> InterruptRecord | None:
    """One interrupt from its three keys (see `reads`); None where there is none. `row`: its fields, where unpacked.

    Without the third, its verdict, how it ended is not looked at. What cannot be read is reported in `problem`, the
    rest is given all the same, and without a state that this release knows it counts as open.
    """
    problems: list[str] = []

    def attempt(otherwise: T, read: Callable[..., T], *given: Any) -> T:
        try:
            return read(*given)
        except Corrupt as broken:
            problems.append(str(broken))
            return otherwise

    key, nothing = p.key("interrupt", interrupt), dict[str, bytes]()
    f = Fields(key, row if row is not None else attempt(nothing, _stored, replies[0], key))
    if not f.raw and not problems:
        return None
    question = attempt(UNREADABLE, _question, replies[1], p.key("question", interrupt))
    state = attempt(Settlement.OPEN, f.word, "state", Settlement)
    resolution = None
    if state is not Settlement.OPEN and len(replies) > 2:  # noqa: PLR2004
        resolution = attempt(None, _resolution, p, interrupt, f, question, replies[2])
    values = {
        "id": interrupt, "run_id": f.text("run"), "session_id": f.text("session"), "seq": attempt(0, f.number, "seq"),
        "queue": f.text("queue"), "agent": f.text("agent"), "build": f.text("build") or None, "state": state,
        "interrupt": question, "digest": f.text("digest"), "opened_at": attempt(EPOCH, f.instant, "opened"),
        "deadline": attempt(None, f.moment, "deadline"), "heartbeat_by": attempt(None, f.moment, "beat_by"),
        "resolution": resolution,
        "problem": problems[0] if problems else None,
    }  # fmt: skip
    return InterruptRecord.made(values)


def _stored(reply: Any, key: str) -> dict[str, bytes]:
    return record(usable(reply, key), key)


def _question(reply: Any, key: str) -> Interrupt:
    return Interrupt.from_bytes(usable(reply, key) or b"", key=key)


def _resolution(p: Partition, interrupt: str, f: Fields, question: Interrupt, verdict: Any) -> Resolution:
    answer = _answer(p, interrupt, f, question, verdict) if f.text("answer") else None
    values = {
        "interrupt_id": interrupt, "state": f.word("state", Settlement), "answer": answer, "by": f.principal("by"),
        "at": f.instant("at"), "op": f.text("op") or None, "reason": f.text("why") or None,
    }  # fmt: skip
    return Resolution.made(values)


def _answer(p: Partition, interrupt: str, f: Fields, question: Interrupt, verdict: Any) -> Answer:
    """The accepted answer. A mark that points to the verdict of another question or action is not believed (P13)."""
    slot = f.text("verdict") or interrupt
    key = p.key("verdict", slot)
    data = usable(verdict, key)
    if data is None:
        raise Corrupt(key, "the interrupt is marked as answered, and there is no verdict")
    if content_digest(data) != f.text("mark"):
        raise Corrupt(key, "it is not the verdict that the interrupt's mark is about")
    found = Verdict.from_bytes(data, key=key)
    about, slots = interrupt, [interrupt]
    if slot != interrupt:
        session, run, call = f.text("session"), f.text("run"), f.text("call")
        seq = int(f.text("asked") or f.number("seq"))
        about = early_identity(session, call)
        slots = [early_slot(session, *at, call) for at in ((run, seq), (run, 0), ("", 0))]
    if found.interrupt_id != about or slot not in slots:
        raise Corrupt(key, "it is the verdict of another question")
    if found.action_digest is not None and found.action_digest != approved_digest(question, found.answer):
        raise Corrupt(key, "it is about another action than the question now shows")
    return found.answer


def run_record(p: Partition, run: str, replies: Sequence[Any], *, lenient: bool = False) -> RunRecord | None:
    """One run from its four keys (see `reads`); None where there is none. Raises `Corrupt`.

    A `lenient` reader gets a run whose input or result cannot be read all the same, and that among its errors.
    """
    key = p.key("run", run)
    f = Fields(key, record(usable(replies[0], key), key))
    if not f.raw:
        return None
    input_key, result_key = p.key("input", run), p.key("result", run)
    faults: list[str] = []

    def attempt(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Corrupt as broken:
            if not lenient:
                raise
            faults.append(str(broken))
            return otherwise

    def read(kind: type[M], reply: Any, key: str, otherwise: M) -> M:
        stored = attempt(lambda: usable(reply, key), None)
        return attempt(lambda: kind.from_bytes(stored, key=key), otherwise) if stored else otherwise

    given = read(InputRecord, replies[1], input_key, InputRecord())
    ended = read(ResultRecord, replies[2], result_key, ResultRecord(result=None))
    values = {
        "id": run, "session_id": f.text("session"), "agent": f.text("agent"), "build": f.text("build") or None,
        "queue": f.text("queue"), "priority": f.number("priority"), "state": f.word("state", RunState),
        "seq": f.number("seq"), "fence": f.number("fence"), "tries": f.number("tries"),
        "holder": f.text("holder") or None, "lease_until": f.moment("lease_until"),
        "mode": f.word("mode", Mode) if f.text("mode") else Mode.ALL, "interrupt_ids": tuple(f.text("ids").split()),
        "created_at": f.instant("created"), "updated_at": f.instant("suspended" if f.text("suspended") else "created"),
        "errors": (*faults, *(_error(line) for line in usable(replies[3], p.key("errors", run)))),
        "metadata": given.metadata, "input": given.input, "protocol_ids": given.protocol_ids,
        "result": ended.result,
    }  # fmt: skip
    return RunRecord.made(values)


def _error(packed: bytes) -> str:
    parts = unpacked(packed, 5)
    if parts is None:
        return "an entry that cannot be read"
    at, fence, holder, kind, said = (text(part) for part in parts)
    when = f"{instant(at):%Y-%m-%d %H:%M:%S}" if at.isdecimal() and len(at) < 18 else "?"  # noqa: PLR2004
    return f"{when} attempt {fence} on {holder or '?'}: {kind}{': ' + said if said else ''}"


def history_entry(packed: bytes) -> HistoryEntry:
    """One entry of a history; what cannot be read stands there as `unreadable`, at the time it has if any."""
    at = packed[:16].lstrip(b"0")
    when = instant(at) if at.isdigit() else instant("")
    parts = unpacked(packed[16:], 10)
    values: dict[str, Any] = {"at": when, "event": "unreadable", "run_id": ""}
    if parts is not None:
        _, event, run, seq, interrupt, state, by, op, digest, detail, *_ = parts
        words = {"interrupt_id": interrupt, "state": state, "op": op, "digest": digest, "detail": detail}
        values |= {name: text(value) or None for name, value in words.items()}
        number = text(seq)
        try:
            who = principal(by)
        except Corrupt:
            who = None
        values |= {
            "event": text(event),
            "run_id": text(run),
            "seq": int(number) if number.isdecimal() else 0,
            "by": who,
        }
    return HistoryEntry.made(values)
