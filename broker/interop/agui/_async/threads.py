"""The AG-UI threads of a namespace: what comes in for them, and how their runs ended."""

from collections.abc import Iterable

from .... import AsyncBroker
from ....core.answers import Cancel, Principal
from ....core.fields import from_ms
from ....core.ids import bits_of
from ....core.outcomes import Expired, NotDurable
from ....core.records import InterruptRecord, RunRecord
from ....core.states import RunState, Settlement
from ....errors import BrokerError, Refused, UnknownId
from ..asking import ended
from ..resuming import SPEC_1_0, Code, Plan, Policy, Refusal, Thread, plan
from ..shapes import RunAgentInput, RunError, RunFinished

ATTEMPTS = 3
"""How often a list is planned anew when others settle its questions meanwhile."""


class AsyncThreads:
    """The AG-UI threads of a broker. A thread is a session; its broker run goes on through several AG-UI runs."""

    def __init__(self, broker: AsyncBroker, policy: Policy = SPEC_1_0) -> None:
        self._broker = broker
        self.policy: Policy = policy

    async def read(self, thread_id: str, named: Iterable[str] = ()) -> Thread:
        """A thread: its latest interrupted run, its questions, and those that `named` are the ids of. It only reads.

        Runs that came by AG-UI (with a protocol id) go before others of the session. Raises `Corrupt`.
        """
        broker = self._broker
        runs: list[RunRecord] = [await broker.runs.get(run) for run in await broker.active(thread_id)]
        run = max(runs, key=lambda one: (bool(one.protocol_ids), one.updated_at), default=None)
        ids = run.interrupt_ids if run is not None else ()
        asked = [await broker.inbox.get(one) for one in ids]
        others: list[InterruptRecord] = []
        for one in named:
            if one in ids or bits_of(one) is None:
                continue
            try:
                others.append(await broker.inbox.get(one))
            except UnknownId:  # for the plan to judge: nothing is known under that id
                continue
        now = from_ms(broker._link.server_now() // 1000)  # noqa: SLF001 - the same house
        return Thread(thread_id, now, run, tuple(asked), tuple(others))

    async def receive(self, request: RunAgentInput, *, by: Principal | None = None) -> Plan | Refusal:
        """Takes the input of a run: answers what is open, once and whole, or says why nothing was done.

        A `Plan` with a `run_id`: that broker run goes on, by what was answered now or (`replayed`) before. One without:
        nothing was open, start a run of its own. Safe to repeat. Others may settle a question between the check and the
        answer; then it is a `Refusal` with the code `conflict`, and what was answered stays answered. Raises `Corrupt`,
        `Refused` with `NotDurable`, `InvalidInput` where nobody is named.
        """
        named = [one.interrupt_id for one in request.resume or ()]
        for _ in range(ATTEMPTS):
            made = plan(request, await self.read(request.thread_id, named), self.policy)
            if isinstance(made, Refusal) or not made.answers:
                return made
            if await self._answer(made, by):
                return made
        return Refusal(Code.CONFLICT, tuple(named))

    async def _answer(self, made: Plan, by: Principal | None) -> bool:
        """Whether all answers were accepted; an expired question that was to be cancelled has come to the same."""
        done = True
        came = await self._broker.batch.answer(made.answers, by=by)
        for one, outcome in zip(made.answers, came, strict=True):
            if isinstance(outcome, BrokerError):
                raise outcome
            if isinstance(outcome, NotDurable):
                raise Refused(outcome)
            done = done and (outcome.ok or (isinstance(outcome, Expired) and isinstance(one.answer, Cancel)))
        return done

    async def ended(self, run_id: str, as_run: str) -> RunFinished | RunError:
        """The event with which the AG-UI run `as_run` ends, by how the broker run `run_id` stands; see `ended`.

        It only reads. Raises `InvalidInput` for a run that is at work, `UnknownId`, `Corrupt`.
        """
        while True:
            run = await self._broker.runs.get(run_id)
            asked = [await self._broker.inbox.get(one) for one in run.interrupt_ids]
            # One that was answered between the two reads does not wait any more: look again.
            if run.state is not RunState.WAITING or any(one.state is Settlement.OPEN for one in asked):
                return ended(run, asked, as_run)
