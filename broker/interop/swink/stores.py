"""swink's store of interrupts over a broker: what its trait promises, across processes and machines.

There is one interrupt in a session there; a session of a broker may have several runs that wait, and then the run is
named. A session is known where something is on record of it: a run was started, or a file was imported.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ..._async.client import AsyncBroker
from ...core.digest import content_digest
from ...core.ids import new_run_id
from ...core.models import Interrupt, InterruptState
from ...core.outcomes import Accepted, Conflict, Replayed
from ...errors import InvalidInput, Refused, UnknownId
from .decisions import OFFERS, ApprovalRequest
from .snapshots import check_session_id, read_interrupt

_TRIES: Final = 8


class InterruptStore(ABC):
    """Where interrupts are kept. Nothing has a default: a store that lacks one of these cannot be made (S15).

    Session ids are those swink takes; others raise `InvalidInput`.
    """

    @abstractmethod
    async def save(self, session: str, state: InterruptState) -> None:
        """Puts an interrupt in the place of the one before it, whole. Raises `UnknownId` for an unknown session."""

    @abstractmethod
    async def load(self, session: str) -> InterruptState | None:
        """The interrupt of a session; None where the session or its interrupt is missing.

        What is there and cannot be read raises, stays, and counts as active.
        """

    @abstractmethod
    async def clear(self, session: str) -> bool:
        """Whether there was an interrupt; there is none afterwards. Safe to repeat, also without a session."""

    @abstractmethod
    async def delete(self, session: str) -> bool:
        """Whether there was anything to delete: the session goes and its interrupt with it. Safe to repeat."""


class BrokerStore(InterruptStore):
    """Interrupts as pauses of runs: each saved one asks about its pending calls, and its run waits for the answers.

    `agent`, `queue` and `build` say which workers go on with what was saved or imported. `expires_in` is how long its
    questions wait: swink's have no deadline, so the default is for ever.
    """

    def __init__(
        self,
        broker: AsyncBroker,
        *,
        agent: str = "swink",
        queue: str = "agents",
        build: str | None = None,
        expires_in: timedelta | None = None,
    ) -> None:
        self._broker = broker
        self._agent = agent
        self._queue = queue
        self._build = build
        self._expires_in = expires_in

    async def save(
        self,
        session: str,
        state: InterruptState,
        *,
        run_id: str | None = None,
        expected: int | None = None,
    ) -> None:
        """Puts an interrupt in the place of the one before it; the open questions of that one are superseded.

        `expected` is the number of the pause it replaces (0: there is none), as `sequence` gave it: with another one
        it raises `Refused` with `Conflict`, and so does a run that was answered or is being resumed. Without
        `expected` the last writer wins. Raises `UnknownId` for a session nobody has heard of.
        """
        check_session_id(session)
        if not await self._broker.history(session, limit=1):
            raise UnknownId("session", session)
        for left in reversed(range(_TRIES)):
            found = await self._run(session, run_id)
            at = found[1] if found else 0
            if expected not in (None, at):
                raise Refused(Conflict(reason=f"the interrupt has moved on: expected {expected}, found {at}"))
            try:
                await self._put(session, state, found)
            except Refused as refused:
                moved = isinstance(refused.outcome, Conflict) and await self._run(session, run_id) != found
                if not (moved and left):
                    raise
            else:
                return

    async def load(self, session: str, *, run_id: str | None = None) -> InterruptState | None:
        """The interrupt of a session, or of one of its runs; None where there is none. Raises `Corrupt`."""
        check_session_id(session)
        found = await self._run(session, run_id)
        return await self._broker.runs.state(found[0]) if found else None

    async def clear(self, session: str, *, run_id: str | None = None) -> bool:
        """Whether there was an interrupt; its questions are taken back and its run is closed.

        For interrupts that are resumed elsewhere, after that is durable. A worker of the broker that goes on with the
        run needs none of it: the interrupt is gone when it finishes, and offered again when it dies. While it works,
        this raises `Refused` with `Conflict`.
        """
        check_session_id(session)
        found = await self._run(session, run_id)
        return found is not None and await self._withdraw(found[0], "cleared")

    async def delete(self, session: str) -> bool:
        """Whether a run of the session was open: each is closed in one step with its questions and its mark.

        What happened stays on record until its time is over. Raises `Refused` with `Conflict` where a worker holds one.
        """
        check_session_id(session)
        active = await self._broker.active(session)
        return any([await self._withdraw(run, "session deleted") for run in sorted(active)])

    async def is_active(self, session: str) -> bool:
        """Whether the session is interrupted, in one read. What cannot be read counts as active."""
        return bool(await self._broker.active(check_session_id(session)))

    async def sequence(self, session: str, *, run_id: str | None = None) -> int:
        """The number of the pause that holds the session's interrupt; 0 where there is none."""
        found = await self._run(check_session_id(session), run_id)
        return found[1] if found else 0

    async def import_file(self, session: str, data: bytes, *, replace: bool = False) -> Accepted | Replayed:
        """The pause made of a file's bytes; the session need not be known before.

        The same file again is `Replayed`, also after its run has ended and until that is forgotten. A session that is
        interrupted by something else raises `Refused` with `Conflict`. With `replace` the file takes the place of
        whatever is there, and is asked about anew. A file that does not parse raises `InvalidInput`; nothing changed.
        """
        check_session_id(session)
        state = read_interrupt(data)
        if replace:
            return await self._put(session, state, await self._run(session, None))
        key = f"file:{content_digest(data)[:32]}"
        active = await self._broker.active(session)
        if active and new_run_id(session, namespace=self._broker.namespace, key=key) not in active:
            raise Refused(Conflict(reason="the session is interrupted already"))
        return await self._put(session, state, None, key)

    async def _put(
        self, session: str, state: InterruptState, found: tuple[str, int] | None, key: str | None = None
    ) -> Accepted | Replayed:
        asked = self._questions(state)
        if found is None:
            return await self._broker.suspend(
                self._agent,
                *asked,
                session=session,
                state=state,
                key=key,
                queue=self._queue,
                build=self._build,
            )
        run, seq = found
        return await self._broker.suspend(
            self._agent, *asked, session=session, state=state, run_id=run, seq=seq + 1, replace=True,
            queue=self._queue, build=self._build,
        )  # fmt: skip

    def _questions(self, state: InterruptState) -> Sequence[Interrupt]:
        """One question for each pending call; without any, one whether the session is to go on."""
        if not state.pending_tool_calls:
            return [
                Interrupt(
                    reason="swink:interrupted", message="The session was interrupted; no call waits. Go on?",
                    offers=(OFFERS[0], *OFFERS[2:]), expires_in=self._expires_in,
                )
            ]  # fmt: skip
        # A call without arguments is made with none of them, whichever way swink wrote that: as such it is asked about.
        return [
            ApprovalRequest(
                id=call.tool_call_id, name=call.tool_name, requires_approval=True,
                arguments={} if call.arguments is None else call.arguments,
            ).interrupt(expires_in=self._expires_in)
            for call in state.pending_tool_calls
        ]  # fmt: skip

    async def _run(self, session: str, run_id: str | None) -> tuple[str, int] | None:
        """The run that holds the session's interrupt and the number of its pause."""
        active = await self._broker.active(session)
        if run_id is not None:
            return (run_id, active[run_id]) if run_id in active else None
        if len(active) > 1:
            raise InvalidInput("run_id", "is missing, and several runs wait", ", ".join(sorted(active)))
        return next(iter(active.items()), None)

    async def _withdraw(self, run_id: str, reason: str) -> bool:
        told = await self._broker.runs.withdraw(run_id, reason=reason)
        if isinstance(told, Accepted | Replayed):
            return True
        if isinstance(told, Conflict):
            raise Refused(told)
        return False
