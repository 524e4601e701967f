"""What the adapters have in common whose framework's state is a value: an agent that is itself a worker's handler."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .._async.client import AsyncBroker
from .._async.run import Run
from ..core.ids import new_run_id
from ..core.limits import JSON, check_name
from ..core.outcomes import Accepted, Replayed
from ._contract import Answered, Described, Finished, Outcome, Parked, drive, park, supersede


class Resumable(ABC):
    """An agent whose runs park by themselves, and that any worker goes on with: `worker.add("support", support)`.

    `resumable` of its adapter makes it. `builds` are those whose paused runs a worker with it is given.
    """

    def __init__(
        self, about: Described, accepts: Sequence[str], question: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:  # fmt: skip
        check_name("name", about.agent)
        self.described: Described = about
        self.accepts: tuple[str, ...] = tuple(check_name("accepts", one) for one in accepts)
        self.builds: tuple[str, ...] = (about.build, *self.accepts)
        self._question = dict(question)
        self._options = dict(options)

    async def __call__(self, run: Run[Any]) -> JSON:
        """The result of a leased run, for a worker. Raises `Paused` when it has parked.

        New input supersedes what the agent asked in other runs of the session.
        """
        if run.state is None:
            await supersede(run._link, run.session_id, run.agent, but=run.id)  # noqa: SLF001 - the same house
        return await drive(run, self, accepts=self.accepts)

    async def run(
        self, broker: AsyncBroker, given: JSON, *, session: str, key: str, queue: str = "agents"
    ) -> Finished | Accepted | Replayed:
        """What a run came to that no worker holds: its result, or the pause that workers go on from.

        `key` names the run in its session. A repeat runs the agent again up to its first pause; the same pause is
        `Replayed`. Raises what the agent raises, `InvalidInput`, and `Refused`, also where a run of the session is at
        work.
        """
        about = self.described
        run_id = new_run_id(session, namespace=broker.namespace, key=key)
        await supersede(broker._link, session, about.agent, but=run_id)  # noqa: SLF001 - the same house
        outcome = await self.start(given)
        if isinstance(outcome, Finished):
            return outcome
        return await park(broker, self, outcome, session=session, key=key, queue=queue)

    @abstractmethod
    async def start(self, given: JSON) -> Outcome:
        """The first segment of a run, from its input."""

    @abstractmethod
    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next segment, from a state and how its questions ended."""

    @abstractmethod
    async def read_back(self, parked: Parked) -> None:
        """Nothing, or what the framework's loader raises for a state that it could not go on from."""
