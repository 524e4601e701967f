"""What a case of the suite plays on: one folder, one namespace, and workers in processes of their own."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from broker import Answer, AsyncBroker, Interrupt, InterruptRecord, Outcome, Principal, RunRecord, RunState
from broker.testing import await_until
from tests.worker.fleet import run_when

from .child import AGENT, Child
from .world import World

ME: Final = Principal.local("ada")
PATIENCE: Final = 120.0


@dataclass
class Stage:
    """`paused` starts a run and kills the worker that parked it; `finished` has another one go on."""

    subject: str
    broker: AsyncBroker
    url: str
    namespace: str
    world: World
    stack: ExitStack
    pids: list[int] = field(default_factory=list)
    session: str = "thread-1"
    options: dict[str, Any] = field(default_factory=dict)
    """What every worker is told."""

    def worker(self, scenario: str, **options: Any) -> Child:
        """A worker process of a scenario's agent."""
        given = {
            "subject": self.subject, "url": self.url, "namespace": self.namespace,
            "folder": str(self.world.folder), "scenario": scenario,
        }  # fmt: skip
        child = Child(given | self.options | options)
        self.stack.callback(child.kill)
        self.pids.append(child.pid)
        return child

    async def start(self, given: Any = None, *, session: str | None = None, build: str | None = None) -> str:
        """The id of a new run."""
        outcome = await self.broker.start(AGENT, given, session=session or self.session, build=build)
        return outcome.run_id

    async def paused(self, scenario: str, given: Any = None, **options: Any) -> RunRecord:
        """A run that a worker has parked, which was killed then."""
        run_id = await self.start(given)
        first = self.worker(scenario, **options)
        run = await self.when(run_id, RunState.WAITING, RunState.DEAD)
        first.kill()
        assert run.state is RunState.WAITING, run.errors
        return run

    async def when(self, run_id: str, *states: RunState) -> RunRecord:
        """The run, once it is in one of these states."""
        return await run_when(self.broker, run_id, *states, timeout=PATIENCE)

    async def asked(self, run: RunRecord | str) -> list[InterruptRecord]:
        """The questions of the last pause."""
        now = await self.broker.runs.get(run if isinstance(run, str) else run.id)
        return [await self.broker.inbox.get(one) for one in now.interrupt_ids]

    async def answer(self, asked: InterruptRecord, answer: Answer) -> Outcome:
        """What became of an answer to what was shown."""
        return await self.broker.inbox.answer(asked.id, answer, seen=asked.digest, by=ME)

    async def answer_all(self, run: RunRecord | str, answers: Sequence[Answer]) -> None:
        """Answers the questions of the last pause in their order."""
        for one, answer in zip(await self.asked(run), answers, strict=True):
            outcome = await self.answer(one, answer)
            assert outcome.ok, outcome

    async def finished(self, run: RunRecord | str, scenario: str, **options: Any) -> RunRecord:
        """The run's record, once another worker has ended it."""
        self.worker(scenario, **options)
        return await self.ended(run)

    async def ended(self, run: RunRecord | str) -> RunRecord:
        """The run's record, once it is closed or dead."""
        found = await self.broker.wait(run if isinstance(run, str) else run.id, PATIENCE)
        assert isinstance(found, RunRecord)
        return found

    async def next_pause(self, run: RunRecord) -> RunRecord:
        """The run, once it has paused again."""

        async def later() -> RunRecord | None:
            now = await self.broker.runs.get(run.id)
            return now if now.seq > run.seq and now.state is RunState.WAITING else None

        found = await await_until(later, PATIENCE, what="it has paused again")
        assert found is not None
        return found

    async def has_effects(self, count: int) -> None:
        """Returns when tools have had so many effects."""

        async def enough() -> bool:
            return len(self.world.effects) >= count

        await await_until(enough, PATIENCE, what=f"{count} effects")

    async def is_up(self, child: Child) -> None:
        """Returns when a worker is about to take runs."""

        async def up() -> bool:
            return "begins" in child.log

        await await_until(up, PATIENCE, what="the worker is up")


def shown(asked: Interrupt) -> Any:
    """What a person sees that has to be decided: the arguments of a call, else the payload."""
    return asked.action.arguments if asked.action is not None else asked.payload
