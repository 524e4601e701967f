"""What waits for one CodeAct agent of a session, seen from outside: load, save and clear it, decide and complete."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from ....core.answers import Answer, AnswerKind, Complete, Principal
from ....core.digest import canonical_json, content_digest
from ....core.dispositions import ResolutionRecord
from ....core.entries import Result
from ....core.limits import JSON, check_id, check_name
from ....core.outcomes import Accepted, Conflict, Outcome, Replayed, Unknown
from ....core.records import InterruptRecord, RunRecord
from ....core.states import CLOSED, CallState, RunState, Settlement
from ....core.tools import TimedOut
from ....errors import Refused, UnknownId
from ....store.commands import entries, reads
from ....store.commands.address import read_addresses, read_aliases
from ....store.commands.entries import Known
from ..decisions import Decision, ManagedAnswer, Word, fits
from ..keeping import STATE_KEY, answered, found, frozen, question, record_of, standing
from ..shapes import Checkpoint, ConfirmationRequest, FunctionResponse
from ..telling import (
    Completed,
    Handler,
    Told,
    call_of,
    is_job,
    is_of,
    request_of,
    stored,
    waits_for_a_decision,
)
from ._runtime import AsyncBroker, invoke

EARLY: Final = "early_"
"""What a verdict's place begins with that came before its question."""


class AsyncAgentSession:
    """The pending checkpoint of one agent in one session: another agent of the session has its own (A20).

    It acts on the agent's run that is interrupted; name a `run_id` to act on that one, also while it executes.
    """

    def __init__(
        self,
        broker: AsyncBroker,
        session: str,
        agent: str,
        *,
        queue: str = "agents",
        run_id: str | None = None,
    ) -> None:
        self._broker = broker
        self._run_id = run_id
        self.session: str = check_id("session", session)
        self.agent: str = check_name("agent", agent)
        self._queue = check_name("queue", queue)

    # The checkpoint --------------------------------------------------------------------------------------------

    async def load(self) -> Checkpoint | None:
        """The checkpoint as it stands, None where there is none. Raises `Corrupt` for one that cannot be read."""
        run = await self._run()
        kept = await self._kept(run) if run is not None else None
        if run is None or kept is None:
            return None
        known = await self._known(run, kept.call.entry)
        return kept.model_copy(update={"disposition": standing(kept, known, await self._ended(known))})

    async def save(
        self, checkpoint: Checkpoint, *, offers: tuple[AnswerKind, ...] | None = None
    ) -> Accepted | Replayed:
        """Keeps a checkpoint in the place of the one before it, and asks what it waits for. Safe to repeat.

        One that waits for nobody (`pending_result`, `resolved`) makes a run that is ready for a worker. `offers` are
        the answers that a confirmation takes, where not approve, reject and cancel. Raises `InvalidInput`, and
        `Refused` with `Conflict` while a worker is at it.
        """
        asked, run = question(checkpoint, offers), await self._run()
        key = f"codeact-{content_digest(canonical_json([self.agent, checkpoint.to_json()]))[:32]}"
        if asked is None:
            if run is not None:
                raise Refused(Conflict(reason="the agent waits with another checkpoint in this session"))
            given = {STATE_KEY: checkpoint.to_json()}
            return await self._broker.start(
                self.agent, given, session=self.session, key=key, queue=self._queue
            )
        place: dict[str, Any] = {"key": key}
        if run is not None:
            again = run.seq > 0 and await self._kept(run) == checkpoint
            place = {"run_id": run.id, "seq": run.seq + (not again), "replace": not again}
        return await self._broker.suspend(
            self.agent, asked, session=self.session, state=frozen(checkpoint), queue=self._queue, **place
        )

    async def clear(self) -> tuple[Outcome, ...]:
        """Takes back what waits, and with it the run: what became of each. Safe to repeat; none is nothing (A19)."""
        return tuple([await self._broker.runs.withdraw(run.id) for run in await self._runs()])

    async def apply(self, state_delta: Mapping[str, JSON]) -> None:
        """Does what a state delta says of the pending checkpoint: null clears it, a checkpoint is saved."""
        if STATE_KEY not in state_delta:
            return
        if state_delta[STATE_KEY] is None:
            await self.clear()
        else:
            await self.save(Checkpoint.from_json(state_delta[STATE_KEY]))

    # Confirmations ---------------------------------------------------------------------------------------------

    async def requests(self) -> tuple[ConfirmationRequest, ...]:
        """What waits for a decision, in the order it was asked; the same until it is decided (A9)."""
        return tuple([request_of(one) for one in await self._questions() if waits_for_a_decision(one)])

    async def decide(self, *decisions: Decision, by: Principal | None = None) -> tuple[Told, ...]:
        """What became of each decision. One about no call that waits is `Unknown`, and releases nothing (A11).

        One whose fingerprint is of other arguments is void: `Conflict`, and the question stays open (A12).
        """
        return tuple([await self._say(one.call_id, one.answer, by, one.fingerprint) for one in decisions])

    async def answer(self, event: ManagedAnswer, *, by: Principal | None = None) -> Told:
        """What became of an event of the managed runtime; a call that does not wait is `Unknown` (A25)."""
        if event.answer is None:
            return Told(event.call_id, error="an event that is not known")
        return await self._say(event.call_id, event.answer, by)

    async def confirm(
        self, handler: Handler, *, timeout: timedelta | None = None, by: Principal | None = None
    ) -> tuple[Told, ...]:
        """Asks a live handler about each call that waits for a decision, and records what it says, as `decide` does.

        One that fails, takes too long or says what is no decision has decided nothing: the question stays open (A23).
        """
        return tuple(
            [
                await self._ask(one, handler, timeout, by)
                for one in await self._questions()
                if waits_for_a_decision(one)
            ]
        )

    async def _ask(
        self, asked: InterruptRecord, handler: Handler, timeout: timedelta | None, by: Principal | None
    ) -> Told:
        call_id = call_of(asked)
        try:
            said = await invoke(handler, (request_of(asked),), {}, timeout)
            answer = (
                said if isinstance(said, Answer) else Decision(call_id=call_id, decision=Word(said)).answer
            )
        except TimedOut:
            return Told(call_id, error="timeout", open=True)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, it has not decided
            return Told(call_id, error=type(error).__name__, open=True)
        return await self._said(asked, answer, by)

    # Completions -----------------------------------------------------------------------------------------------

    async def complete(self, message: JSON, *, by: Principal | None = None) -> Completed:
        """What became of the results of long-running calls in a message, by call id and tool.

        A result without an id is that of the one call of its tool that waits; where several do it is `Unknown`, as is
        one with another id. The first result of a call counts: a second is told the one that is stored (A14, A15).
        """
        told = [await self._complete(one, by) for one in FunctionResponse.all_of(message)]
        jobs = [one for one in await self._questions() if is_job(one)]
        have = tuple(call_of(one) for one in jobs if one.state is not Settlement.OPEN)
        run = await self._run()
        released = run is None or run.state is not RunState.WAITING
        return Completed(tuple(told), tuple(map(call_of, jobs)), have, released)

    async def _complete(self, response: FunctionResponse, by: Principal | None) -> Told:
        answer = Complete(value=response.response)
        if response.id is not None:
            return await self._say(response.id, answer, by, tool=response.name)
        jobs = [one for one in await self._questions() if is_job(one) and one.state is Settlement.OPEN]
        named = [one for one in jobs if is_of(one, response.name)]
        if len(named) != 1:
            return Told("", outcome=Unknown(id=response.name))
        return await self._said(named[0], answer, by)

    # Input that comes meanwhile --------------------------------------------------------------------------------

    async def queue(self, message: JSON, *, by: Principal | None = None, op: str | None = None) -> int:
        """Keeps input that comes while the agent waits, in order; how many there are now (A21).

        Safe to repeat with an `op`. The agent finds it when it goes on, by `CodeAct.queued`. Raises `UnknownId` where
        the agent does not wait, and `Refused` where its run has closed meanwhile.
        """
        run = await self._run()
        if run is None:
            raise UnknownId("interrupted agent", self.agent)
        outcome = await self._broker.runs.say(run.id, message, by=by, op=op)
        if not outcome.ok:
            raise Refused(outcome)
        return len(await self._broker.runs.said(run.id))

    # ------------------------------------------------------------------------------------------------------------

    async def _runs(self) -> list[RunRecord]:
        """The runs it acts on, the one that changed last at the end."""
        ids = [self._run_id] if self._run_id is not None else await self._broker.active(self.session)
        runs = [await self._broker.runs.get(one) for one in ids]
        mine = [run for run in runs if run.agent == self.agent and run.session_id == self.session]
        return sorted(mine, key=lambda run: (run.state not in CLOSED, run.updated_at))

    async def _run(self) -> RunRecord | None:
        runs = await self._runs()
        return runs[-1] if runs and runs[-1].state not in CLOSED else None

    async def _questions(self) -> list[InterruptRecord]:
        ids = [one for run in await self._runs() for one in run.interrupt_ids]
        return [await self._broker.inbox.get(one) for one in ids]

    async def _past(self, call_id: str) -> list[InterruptRecord]:
        """What its runs asked about calls of that id in earlier pauses, as far as it is kept, the last one at the end.

        Not what other runs did: scripts number their calls from the beginning.
        """
        link = self._broker._link  # noqa: SLF001 - the same house
        p = link.space.of_session(self.session)
        addresses = await link.fetch(
            read_addresses(p, await link.fetch(read_aliases(p, self.session, call_id)))
        )
        found = await link.fetch(
            reads.read_interrupts(p, [(one.interrupt, one.verdict) for one in addresses])
        )
        mine = {run.id for run in await self._runs()}
        return [one for one in found if one.run_id in mine]

    async def _kept(self, run: RunRecord) -> Checkpoint | None:
        """The checkpoint as it was written."""
        link = self._broker._link  # noqa: SLF001 - the same house
        p = link.space.of_session(self.session)
        state = await self._broker.runs.state(run.id)
        return found(run.seq, await link.fetch(entries.read_checkpoint(p, run.id)), state, run.input)

    async def _known(self, run: RunRecord, call_id: str) -> Known:
        link = self._broker._link  # noqa: SLF001 - the same house
        return await link.fetch(entries.read_entry(link.space.of_session(self.session), run.id, call_id))

    async def _ended(self, known: Known) -> ResolutionRecord | None:
        """How the question about a call ended, where its run has not read that yet."""
        if known.state != CallState.RESOLVED or known.result is not None:
            return None
        if known.interrupt.startswith(EARLY):
            link = self._broker._link  # noqa: SLF001 - the same house
            p = link.space.of_session(self.session)
            verdict = await link.fetch(reads.read_verdict(p, known.interrupt))
            return answered(verdict.answer if verdict is not None else None)
        return record_of(Result.of(await self._broker.inbox.get(known.interrupt)))

    async def _say(
        self,
        call_id: str,
        answer: Answer,
        by: Principal | None,
        fingerprint: str | None = None,
        *,
        tool: str | None = None,
    ) -> Told:
        """What became of an answer to the one question about a call that waits, or that waited last."""
        named = [one for one in await self._questions() if call_of(one) == call_id]
        if not named:
            named = (await self._past(call_id))[-1:]
        if tool is not None:
            named = [one for one in named if is_of(one, tool)]
        if not named:
            return Told(call_id, outcome=Unknown(id=call_id))
        if len(named) > 1:
            return Told(call_id, outcome=Conflict(reason="more than one call of that id waits"), open=True)
        return await self._said(named[0], answer, by, fingerprint)

    async def _said(
        self, asked: InterruptRecord, answer: Answer, by: Principal | None, fingerprint: str | None = None
    ) -> Told:
        action = asked.interrupt.action
        if fingerprint is not None and (action is None or not fits(fingerprint, action)):
            outcome: Outcome = Conflict(reason="the arguments are not those that were decided about")
        else:
            outcome = await self._broker.inbox.answer(asked.id, answer, seen=asked.digest, by=by)
        now = await self._broker.inbox.get(asked.id)
        return Told(call_of(asked), outcome, open=now.state is Settlement.OPEN, stored=stored(now))
