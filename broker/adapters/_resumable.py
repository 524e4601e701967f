"""What the adapters have in common whose framework's state is a value: an agent that is itself a worker's handler."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final, TypeAlias

from .._async.client import AsyncBroker
from .._async.run import Run
from ..core.ids import new_run_id
from ..core.limits import JSON, check_name
from ..core.outcomes import Accepted, Replayed
from ..errors import AlreadyLeased, UnknownId, WaitTimeout
from ._contract import Answered, Described, Finished, Outcome, Parked, drive, park, supersede
from ._staying import hand_over, starts

OnEvent: TypeAlias = Callable[[Any], Awaitable[None] | None]
"""What is called with each event of an agent's runs, in their order; an async one is awaited."""

_HEARD_BY: Final[ContextVar[OnEvent | None]] = ContextVar("broker_adapter_heard_by", default=None)


class Resumable(ABC):
    """An agent whose runs park by themselves, and that any worker goes on with: `worker.add("support", support)`.

    `resumable` of its adapter makes it; for a framework without an adapter, a class of one's own gives `start`,
    `resume` and `read_back`. `about` says what its states are of. `builds` are those whose paused runs a worker with it
    is given: that of `about`, and those in `accepts`.
    """

    def __init__(
        self, about: Described, accepts: Sequence[str] = (), question: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None, options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        check_name("name", about.agent)
        self.described: Described = about
        self.accepts: tuple[str, ...] = tuple(check_name("accepts", one) for one in accepts)
        self.builds: tuple[str, ...] = (about.build, *self.accepts)
        self._question = dict(question or {})
        self._on_event = on_event
        self._options = dict(options or {})

    async def __call__(self, run: Run[Any]) -> JSON:
        """The result of a leased run, for a worker. Raises `Paused` when it has parked.

        New input supersedes what the agent asked in other runs of the session.
        """
        hand_over(run)
        if run.state is None:
            await supersede(run._link, run.session_id, run.agent, but=run.id)  # noqa: SLF001 - the same house
        return await drive(run, self, accepts=self.accepts)

    async def run(
        self, broker: AsyncBroker, given: JSON, *, session: str, key: str, queue: str = "agents",
        wait: float = 0, on_event: OnEvent | None = None,
    ) -> Finished | Accepted | Replayed:  # fmt: skip
        """What a run came to that no worker held: its result, or the pause that workers go on from.

        It stays for the answers for `wait` seconds, and goes on here if they come before a worker takes the run;
        `on_event` is told what it does here, in the place of the agent's own. `key` names the run in its session. A
        repeat runs the agent again up to its first pause; the same pause is `Replayed`. Raises what the agent raises,
        `InvalidInput`, and `Refused`, also where a run of the session is at work.
        """
        run_id = new_run_id(session, namespace=broker.namespace, key=key)
        await supersede(broker._link, session, self.described.agent, but=run_id)  # noqa: SLF001 - the same house
        with _heard_by(on_event):
            with starts(session, run_id):
                outcome = await self.start(given)
            if isinstance(outcome, Finished):
                return outcome
            told = await park(broker, self, outcome, session=session, key=key, queue=queue)
            return await self._stay(broker, told, monotonic() + wait) if wait > 0 else told

    @property
    def is_heard(self) -> bool:
        """Whether somebody wants the events of what is under way: then the framework streams."""
        return (_HEARD_BY.get() or self._on_event) is not None

    async def tell(self, event: Any) -> None:
        """Hands on one event. Raises what the listener raises, which ends the attempt as anything else does."""
        listener = _HEARD_BY.get() or self._on_event
        told = listener(event) if listener is not None else None
        if inspect.isawaitable(told):
            await told

    async def _stay(
        self, broker: AsyncBroker, told: Accepted | Replayed, until: float
    ) -> Finished | Accepted | Replayed:
        """Goes on with a parked run at each pause that is answered in time, unless a worker was there first."""
        while True:
            try:
                for one in told.interrupt_ids:
                    await broker.inbox.wait(one, max(0, until - monotonic()))
            except WaitTimeout:
                return told
            async with AsyncExitStack() as stack:
                try:
                    run = await stack.enter_async_context(broker.take(told.run_id))
                except (AlreadyLeased, UnknownId):
                    return told
                result = await drive(run, self, accepts=self.accepts)
                await run.finish(result)
                return Finished(result)
            # The block was left by a pause.
            asked = (await broker.runs.get(told.run_id)).interrupt_ids
            told = told.model_copy(update={"interrupt_ids": asked})

    @abstractmethod
    async def start(self, given: JSON) -> Outcome:
        """The first segment of a run, from its input."""

    @abstractmethod
    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next segment, from a state and how its questions ended."""

    @abstractmethod
    async def read_back(self, parked: Parked) -> None:
        """Nothing, or what the framework's loader raises for a state that it could not go on from."""


@contextmanager
def _heard_by(listener: OnEvent | None) -> Iterator[None]:
    """What is called in this block tells this listener, where there is one."""
    reset = _HEARD_BY.set(listener)
    try:
        yield
    finally:
        _HEARD_BY.reset(reset)
