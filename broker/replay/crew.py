"""The processes of a replay, as their parent sees them: started, watched, stopped or killed, replaced."""

import asyncio
import json
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from ..errors import BrokerError
from .process import Part

READY_SECONDS: Final = 60.0
"""How long a process may take until it is connected; a busy machine imports slowly."""
STOP_SECONDS: Final = 15.0
"""How long it may take to drain; then it is killed."""
LOOK_SECONDS: Final = 0.5
TAIL: Final = 2000

WORKER: Final = "worker"
APPROVER: Final = "approver"


class Broken(BrokerError):
    """A process of a replay could not start, or all of its kind have ended before the runs were through."""


@dataclass(eq=False, slots=True)
class Member:
    """One process: its part, and where it writes what it complains of."""

    part: Part
    log: Path
    process: asyncio.subprocess.Process

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def last_words(self) -> str:
        """The end of what it wrote on standard error."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:].strip()


@dataclass(slots=True)
class Crew:
    """Starts processes after a model of their part, in a folder for their logs and records."""

    model: Part
    folder: Path
    records_calls: bool = False
    members: list[Member] = field(default_factory=list)
    _gone: list[Member] = field(default_factory=list)
    _made: Counter[str] = field(default_factory=Counter)

    async def start(self, workers: int, approvers: int) -> None:
        """Starts so many processes side by side, and returns when all are connected. Raises `Broken`."""
        await asyncio.gather(
            *(self.add(WORKER) for _ in range(workers)), *(self.add(APPROVER) for _ in range(approvers))
        )

    async def add(self, role: str) -> Member:
        """One more process of a role, connected. It has a name of its own, also after others were killed."""
        self._made[role] += 1
        name = f"{role}-{self._made[role]}"
        history = str(self.folder / f"{name}.calls") if self.records_calls else None
        part = replace(self.model, role=role, name=name, history=history)
        member = await self._launch(part)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._introduce(member)
        except (TimeoutError, OSError):
            await self.kill(member)
            raise Broken(f"{name} did not get ready: {member.last_words() or 'it says nothing'}") from None
        return member

    async def _launch(self, part: Part) -> Member:
        log = self.folder / f"{part.name}.log"
        pipe = asyncio.subprocess.PIPE
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __package__, stdin=pipe, stdout=pipe, stderr=errors
            )
        member = Member(part, log, process)
        self.members.append(member)
        return member

    async def _introduce(self, member: Member) -> None:
        """Hands the part over on standard input, since it holds the server's password, and waits for `ready`."""
        given, told = member.process.stdin, member.process.stdout
        if given is None or told is None:
            raise OSError("no pipe")
        given.write(json.dumps(asdict(member.part)).encode() + b"\n")
        await given.drain()
        if await told.readline() != b"ready\n":
            raise OSError("not ready")

    async def kill(self, member: Member) -> None:
        """Ends a process without warning. Safe to repeat."""
        if member in self.members:
            self.members.remove(member)
            self._gone.append(member)
        with suppress(ProcessLookupError):
            member.process.kill()
        await member.process.wait()

    async def until_useless(self) -> str:
        """Returns when no process of one of the roles lives: what the last of them said."""
        while True:
            for role in (WORKER, APPROVER):
                ours = [one for one in self.members if one.part.role == role]
                if ours and not any(one.is_alive for one in ours):
                    return f"every {role} has ended: {ours[-1].last_words() or 'without a word'}"
            # Looked at again now and then too, since there may be new ones.
            alive = [one.process.wait() for one in self.members if one.is_alive]
            ends = [asyncio.ensure_future(wait) for wait in (*alive, asyncio.sleep(LOOK_SECONDS, 0))]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()

    async def stop(self) -> None:
        """Lets every process drain and end; kills those that do not. Safe to repeat."""
        await asyncio.gather(*(self._end(member) for member in list(self.members)))

    async def _end(self, member: Member) -> None:
        if member.process.stdin is not None:
            member.process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await member.process.wait()
        await self.kill(member)

    def recorded(self) -> list[tuple[str, Path]]:
        """Name and file of what every process recorded, those that are gone too."""
        everyone = (*self.members, *self._gone)
        return [(one.part.name, Path(one.part.history)) for one in everyone if one.part.history]
