"""The questions that a run has asked about its calls, and how they ended."""

from typing import Any

from ..core.answers import Approve, Edit, Verdict
from ..core.entries import Result
from ..core.models import Action
from ..core.records import InterruptRecord
from ..errors import Corrupt
from ..store.commands import address, reads
from ..store.commands.address import Address, early_identity
from ..store.commands.values import usable


class Answered:
    """What one attempt knows of the questions about its calls: those of the last pause, and what it had to look up."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._link = run._link  # noqa: SLF001 - the same house
        self._leased = run._leased  # noqa: SLF001
        self._learned: dict[str, tuple[Address, InterruptRecord]] = {}

    def interrupt(self, call: str) -> str:
        """The id of the question about a call; empty where none is known."""
        at = self._address(call)
        return at.interrupt if at is not None else ""

    def settled(self, call: str) -> InterruptRecord | None:
        """The question about a call, with its end; None while none is known to have ended."""
        at = self._address(call)
        if at is None:
            return None
        if call in self._learned:
            found = self._learned[call][1]
            return found if found.resolution is not None else None
        records: tuple[InterruptRecord, ...] = self._run.interrupts
        return next((one for one in records if one.id == at.interrupt and one.resolution is not None), None)

    async def learn(self, call: str, interrupt: str) -> None:
        """Reads a question of an earlier pause, whose answer this attempt still needs. Raises `Corrupt`."""
        p = self._leased.partition
        (found,) = await self._link.fetch(address.read_addresses(p, [interrupt])) or (None,)
        if found is None:
            raise Corrupt(p.key("interrupt", interrupt), "a call of the journal refers to it, and it is gone")
        (record,) = await self._link.fetch(reads.read_interrupts(p, [(interrupt, found.verdict)]))
        if record.problem is not None:
            raise Corrupt(p.key("interrupt", interrupt), record.problem)
        self._learned[call] = (found, record)

    async def outcome(self, call: str, interrupt: str) -> Result:
        """The result that a settled question stands for: a value, or a failure that says who and why."""
        if self.interrupt(call) != interrupt or self.settled(call) is None:
            await self.learn(call, interrupt)
        found = self.settled(call)
        if found is None:
            key = self._leased.partition.key("interrupt", interrupt)
            raise Corrupt(key, f"call {call!r} ended with it, and it is open")
        return Result.of(found)

    def running(self, call: str, asked: Action) -> Action:
        """What would run: what was asked for, or as it was edited by who approved it."""
        found = self.settled(call)
        agreed = found.resolution.answer if found is not None and found.resolution is not None else None
        return Action(tool=asked.tool, arguments=agreed.arguments) if isinstance(agreed, Edit) else asked

    def slot(self, call: str) -> str:
        """Where the verdict about a call lies; empty where no question about it is known."""
        at = self._address(call)
        return (at.verdict or at.interrupt) if at is not None else ""

    def check(self, call: str, asked: Action, running: Action, read: Any) -> None:
        """P1: `read` is what lay there after the begin, before the effect. Raises `Corrupt` where that says no."""
        at, slot = self._address(call), self.slot(call)
        key = self._leased.partition.key("verdict", slot or call)
        stored = usable(read, key)
        verdict = Verdict.from_bytes(stored, key=key) if stored else None
        if at is None or verdict is None:
            raise Corrupt(key, "it is not there, and a call was about to run by it")
        about = at.interrupt if slot == at.interrupt else early_identity(at.session, call)
        match verdict.answer:
            case Approve():
                allowed = asked
            case Edit(arguments=arguments):
                allowed = Action(tool=asked.tool, arguments=arguments)
            case _:
                raise Corrupt(key, "it does not allow what was about to run")
        if (
            verdict.interrupt_id != about
            or verdict.action_digest not in (None, allowed.digest)
            or allowed.digest != running.digest
        ):
            raise Corrupt(key, "it allows something else than what was about to run")

    def _address(self, call: str) -> Address | None:
        if call in self._learned:
            return self._learned[call][0]
        known: tuple[Address, ...] = self._run._old  # noqa: SLF001
        return next((one for one in known if one.call == call), None)
