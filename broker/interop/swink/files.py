"""swink's own store: a folder with `{session_id}.jsonl` and, while it is interrupted, `{session_id}.interrupt.json`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from ...core.models import InterruptState
from ...embedded.locks import exclusive
from ...errors import UnknownId
from .._files import flush, write_whole
from .snapshots import SUFFIX, check_session_id, read_interrupt, write_interrupt
from .stores import InterruptStore

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 10.0


class FileStore(InterruptStore):
    """The folder, for any number of processes that use this class (swink's own lock holds inside one process only).

    A file that is there is an active interrupt; one without its session's file is an orphan and is passed over.
    Raises OSError where the folder cannot be read or written.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def path(self, session: str) -> Path:
        """Where the interrupt of a session lies, or would lie."""
        return self._folder / f"{check_session_id(session)}{SUFFIX}"

    def sessions(self) -> tuple[str, ...]:
        """The sessions with an active interrupt, by name; orphans are not among them."""
        found = (path.name.removesuffix(SUFFIX) for path in self._folder.glob(f"*{SUFFIX}"))
        return tuple(sorted(one for one in found if one and self._session(one).exists()))

    async def save(self, session: str, state: InterruptState) -> None:
        """Puts an interrupt in the place of the one before it: written beside it, flushed to disk, renamed.

        Raises `UnknownId` where the session has no file, `InvalidInput` for a state that swink could not read.
        """
        data = write_interrupt(state)
        await self._locked(session, lambda: self._save(session, data))

    async def load(self, session: str) -> InterruptState | None:
        """The interrupt of a session; None for an orphan too. Raises `InvalidInput` for a file that does not parse."""
        data = await self._locked(session, lambda: self._load(session))
        return None if data is None else read_interrupt(data)

    async def clear(self, session: str) -> bool:
        """Whether there was a file."""
        return await self._locked(session, lambda: self._remove(self.path(session)))

    async def delete(self, session: str) -> bool:
        """Whether the session had a file; its interrupt goes first, so that none is ever there without its session."""

        def delete() -> bool:
            self._remove(self.path(session))
            return self._remove(self._session(session))

        return await self._locked(session, delete)

    def _session(self, session: str) -> Path:
        return self._folder / f"{session}.jsonl"

    def _save(self, session: str, data: bytes) -> None:
        if not self._session(session).exists():
            raise UnknownId("session", session)
        write_whole(self.path(session), data)

    def _load(self, session: str) -> bytes | None:
        if not self._session(session).exists():
            return None
        try:
            return self.path(session).read_bytes()
        except FileNotFoundError:
            return None

    def _remove(self, path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        flush(self._folder)
        return True

    async def _locked(self, session: str, work: Callable[[], T]) -> T:
        check_session_id(session)

        def locked() -> T:
            with exclusive(self._folder / f".{session}.lock", _PATIENCE_SECONDS):
                return work()

        return await asyncio.to_thread(locked)
