# Generated from broker/interop/adk/_async/session.py by tests/tools/unasync.py (make sync): do not edit.
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
from ._runtime import Broker, invoke

EARLY: Final = "early_"
"""What a verdict's place begins with that came before its question."""


class AgentSession:
    """The pending checkpoint of one agent in one session: another agent of the session has its own (A20).

    It acts on the agent's run that is interrupted; name a `run_id` to act on that one, also while it executes.
    """

    def __init__(
        self,
        broker: Broker,
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

    def load(self) -> Checkpoint | None:
        """The checkpoint as it stands, None where there is none. Raises `Corrupt` for one that cannot be read."""
        run = self._run()
        kept = self._kept(run) if run is not None else None
        if run is None or kept is None:
            return None
        known = self._known(run, kept.call.entry)
        return kept.model_copy(update={"disposition": standing(kept, known, self._ended(known))})

    def save(
        self, checkpoint: Checkpoint, *, offers: tuple[AnswerKind, ...] | None = None
    ) -> Accepted | Replayed:
        """Keeps a checkpoint in the place of the one before it, and asks what it waits for. Safe to repeat.

        One that waits for nobody (`pending_result`, `resolved`) makes a run that is ready for a worker. `offers` are
        the answers that a confirmation takes, where not approve, reject and cancel. Raises `InvalidInput`, and
        `Refused` with `Conflict` while a worker is at it.
        """
        asked, run = question(checkpoint, offers), self._run()
        key = f"codeact-{content_digest(canonical_json([self.agent, checkpoint.to_json()]))[:32]}"
        if asked is None:
            if run is not None:
                raise Refused(Conflict(reason="the agent waits with another checkpoint in this session"))
            given = {STATE_KEY: checkpoint.to_json()}
            return self._broker.start(self.agent, given, session=self.session, key=key, queue=self._queue)
        place: dict[str, Any] = {"key": key}
        if run is not None:
            again = run.seq > 0 and self._kept(run) == checkpoint
            place = {"run_id": run.id, "seq": run.seq + (not again), "replace": not again}
        return self._broker.suspend(
            self.agent, asked, session=self.session, state=frozen(checkpoint), queue=self._queue, **place
        )

    def clear(self) -> tuple[Outcome, ...]:
        """Takes back what waits, and with it the run: what became of each. Safe to repeat; none is nothing (A19)."""
        return tuple([self._broker.runs.withdraw(run.id) for run in self._runs()])

    def apply(self, state_delta: Mapping[str, JSON]) -> None:
        """Does what a state delta says of the pending checkpoint: null clears it, a checkpoint is saved."""
        if STATE_KEY not in state_delta:
            return
        if state_delta[STATE_KEY] is None:
            self.clear()
        else:
            self.save(Checkpoint.from_json(state_delta[STATE_KEY]))

    # Confirmations ---------------------------------------------------------------------------------------------

    def requests(self) -> tuple[ConfirmationRequest, ...]:
        """What waits for a decision, in the order it was asked; the same until it is decided (A9)."""
        return tuple([request_of(one) for one in self._questions() if waits_for_a_decision(one)])

    def decide(self, *decisions: Decision, by: Principal | None = None) -> tuple[Told, ...]:
        """What became of each decision. One about no call that waits is `Unknown`, and releases nothing (A11).

        One whose fingerprint is of other arguments is void: `Conflict`, and the question stays open (A12).
        """
        return tuple([self._say(one.call_id, one.answer, by, one.fingerprint) for one in decisions])

    def answer(self, event: ManagedAnswer, *, by: Principal | None = None) -> Told:
        """What became of an event of the managed runtime; a call that does not wait is `Unknown` (A25)."""
        if event.answer is None:
            return Told(event.call_id, error="an event that is not known")
        return self._say(event.call_id, event.answer, by)

    def confirm(
        self, handler: Handler, *, timeout: timedelta | None = None, by: Principal | None = None
    ) -> tuple[Told, ...]:
        """Asks a live handler about each call that waits for a decision, and records what it says, as `decide` does.

        One that fails, takes too long or says what is no decision has decided nothing: the question stays open (A23).
        """
        return tuple(
            [self._ask(one, handler, timeout, by) for one in self._questions() if waits_for_a_decision(one)]
        )

    def _ask(
        self, asked: InterruptRecord, handler: Handler, timeout: timedelta | None, by: Principal | None
    ) -> Told:
        call_id = call_of(asked)
        try:
            said = invoke(handler, (request_of(asked),), {}, timeout)
            answer = (
                said if isinstance(said, Answer) else Decision(call_id=call_id, decision=Word(said)).answer
            )
        except TimedOut:
            return Told(call_id, error="timeout", open=True)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, it has not decided
            return Told(call_id, error=type(error).__name__, open=True)
        return self._said(asked, answer, by)

    # Completions -----------------------------------------------------------------------------------------------

    def complete(self, message: JSON, *, by: Principal | None = None) -> Completed:
        """What became of the results of long-running calls in a message, by call id and tool.

        A result without an id is that of the one call of its tool that waits; where several do it is `Unknown`, as is
        one with another id. The first result of a call counts: a second is told the one that is stored (A14, A15).
        """
        told = [self._complete(one, by) for one in FunctionResponse.all_of(message)]
        jobs = [one for one in self._questions() if is_job(one)]
        have = tuple(call_of(one) for one in jobs if one.state is not Settlement.OPEN)
        run = self._run()
        released = run is None or run.state is not RunState.WAITING
        return Completed(tuple(told), tuple(map(call_of, jobs)), have, released)

    def _complete(self, response: FunctionResponse, by: Principal | None) -> Told:
        answer = Complete(value=response.response)
        if response.id is not None:
            return self._say(response.id, answer, by, tool=response.name)
        jobs = [one for one in self._questions() if is_job(one) and one.state is Settlement.OPEN]
        named = [one for one in jobs if is_of(one, response.name)]
        if len(named) != 1:
            return Told("", outcome=Unknown(id=response.name))
        return self._said(named[0], answer, by)

    # Input that comes meanwhile --------------------------------------------------------------------------------

    def queue(self, message: JSON, *, by: Principal | None = None, op: str | None = None) -> int:
        """Keeps input that comes while the agent waits, in order; how many there are now (A21).

        Safe to repeat with an `op`. The agent finds it when it goes on, by `CodeAct.queued`. Raises `UnknownId` where
        the agent does not wait, and `Refused` where its run has closed meanwhile.
        """
        run = self._run()
        if run is None:
            raise UnknownId("interrupted agent", self.agent)
        outcome = self._broker.runs.say(run.id, message, by=by, op=op)
        if not outcome.ok:
            raise Refused(outcome)
        return len(self._broker.runs.said(run.id))

    # ------------------------------------------------------------------------------------------------------------

    def _runs(self) -> list[RunRecord]:
        """The runs it acts on, the one that changed last at the end."""
        ids = [self._run_id] if self._run_id is not None else self._broker.active(self.session)
        runs = [self._broker.runs.get(one) for one in ids]
        mine = [run for run in runs if run.agent == self.agent and run.session_id == self.session]
        return sorted(mine, key=lambda run: (run.state not in CLOSED, run.updated_at))

    def _run(self) -> RunRecord | None:
        runs = self._runs()
        return runs[-1] if runs and runs[-1].state not in CLOSED else None

    def _questions(self) -> list[InterruptRecord]:
        ids = [one for run in self._runs() for one in run.interrupt_ids]
        return [self._broker.inbox.get(one) for one in ids]

    def _past(self, call_id: str) -> list[InterruptRecord]:
        """What its runs asked about calls of that id in earlier pauses, as far as it is kept, the last one at the end.

        Not what other runs did: scripts number their calls from the beginning.
        """
        link = self._broker._link  # noqa: SLF001 - the same house
        p = link.space.of_session(self.session)
        addresses = link.fetch(read_addresses(p, link.fetch(read_aliases(p, self.session, call_id))))
        found = link.fetch(reads.read_interrupts(p, [(one.interrupt, one.verdict) for one in addresses]))
        mine = {run.id for run in self._runs()}
        return [one for one in found if one.run_id in mine]

    def _kept(self, run: RunRecord) -> Checkpoint | None:
        """The checkpoint as it was written."""
        link = self._broker._link  # noqa: SLF001 - the same house
        p = link.space.of_session(self.session)
        state = self._broker.runs.state(run.id)
        return found(run.seq, link.fetch(entries.read_checkpoint(p, run.id)), state, run.input)

    def _known(self, run: RunRecord, call_id: str) -> Known:
        link = self._broker._link  # noqa: SLF001 - the same house
        return link.fetch(entries.read_entry(link.space.of_session(self.session), run.id, call_id))

    def _ended(self, known: Known) -> ResolutionRecord | None:
        """How the question about a call ended, where its run has not read that yet."""
        if known.state != CallState.RESOLVED or known.result is not None:
            return None
        if known.interrupt.startswith(EARLY):
            link = self._broker._link  # noqa: SLF001 - the same house
            p = link.space.of_session(self.session)
            verdict = link.fetch(reads.read_verdict(p, known.interrupt))
            return answered(verdict.answer if verdict is not None else None)
        return record_of(Result.of(self._broker.inbox.get(known.interrupt)))

    def _say(
        self,
        call_id: str,
        answer: Answer,
        by: Principal | None,
        fingerprint: str | None = None,
        *,
        tool: str | None = None,
    ) -> Told:
        """What became of an answer to the one question about a call that waits, or that waited last."""
        named = [one for one in self._questions() if call_of(one) == call_id]
        if not named:
            named = (self._past(call_id))[-1:]
        if tool is not None:
            named = [one for one in named if is_of(one, tool)]
        if not named:
            return Told(call_id, outcome=Unknown(id=call_id))
        if len(named) > 1:
            return Told(call_id, outcome=Conflict(reason="more than one call of that id waits"), open=True)
        return self._said(named[0], answer, by, fingerprint)

    def _said(
        self, asked: InterruptRecord, answer: Answer, by: Principal | None, fingerprint: str | None = None
    ) -> Told:
        action = asked.interrupt.action
        if fingerprint is not None and (action is None or not fits(fingerprint, action)):
            outcome: Outcome = Conflict(reason="the arguments are not those that were decided about")
        else:
            outcome = self._broker.inbox.answer(asked.id, answer, seen=asked.digest, by=by)
        now = self._broker.inbox.get(asked.id)
        return Told(call_of(asked), outcome, open=now.state is Settlement.OPEN, stored=stored(now))
