"""The guard: makes a suspension of the `Interrupted` that leave its block, and hands the answers in at the next entry.

    @guarded
    async def agent(run: Run[Order]) -> str:
        if interrupt({"ask": "40 euros?"}).kind == "approve": ...

What was answered before an earlier pause is kept in the run's journal.
"""

import functools
from collections.abc import Callable, Iterator
from contextvars import Token
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar, overload
from weakref import WeakKeyDictionary

from ..._async.client import AsyncBroker
from ..._async.run import Run
from ..._sync.client import Broker
from ..._sync.run import Run as BlockingRun
from ...core.limits import JSON
from ...core.models import Interrupt, InterruptState
from ...core.outcomes import Accepted, Replayed
from ...core.records import InterruptRecord, Resolution
from ...core.tools import is_async
from ...errors import InvalidInput, Paused
from .raising import ANSWERS, Interrupted

Answers: TypeAlias = list[tuple[str, Resolution]]
"""How questions ended, by the digest of their content."""

B = TypeVar("B", AsyncBroker, Broker)
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True, slots=True)
class Thread(Generic[B]):
    """Where a guard suspends what no worker of the broker holds: its first pause makes the run.

    Without a `session` a pause could never be resumed, and is refused. With a `key` the same pause again is the same
    run. `queue` and `agent` say which workers go on with it.
    """

    broker: B = field(repr=False)
    agent: str
    session: str | None
    key: str | None = None
    queue: str = "agents"

    def place(self) -> dict[str, Any]:
        """What `suspend` is told of it. Raises `InvalidInput` where there is no session."""
        if not self.session:
            fault = "is missing, and a pause without one could never be resumed"
            raise InvalidInput("session", fault, "a session id")
        return {"session": self.session, "key": self.key, "queue": self.queue}


class Guard:
    """What both colours of the guard know: which questions were answered, and which an error asks."""

    def __init__(self, asked: dict[str, Any], state: Callable[[], InterruptState] | None, since: int) -> None:
        self._asked = asked
        self._state = state
        self._since = since
        self._answers: Answers = []
        self._token: Token[Any] | None = None
        self.suspended: Accepted | Replayed | None = None
        """What became of the pause of a `Thread`; None while it has not paused."""

    def take(self, raised: Interrupted) -> Resolution | None:
        """How a question ended, for the first who asks; None where it was not asked or has been taken."""
        digest = raised.question(**self._asked).content_digest
        for place, (known, found) in enumerate(self._answers):
            if known == digest:
                del self._answers[place]
                return found
        return None

    def _pauses(self, run: Run[Any] | BlockingRun[Any]) -> Iterator[tuple[str, list[JSON]]]:
        """By pause, the key of a journal step and what it records: the answers to the last one, none for others.

        Those of an earlier pause were recorded when the run went on from it.
        """
        since, answers = _known.get(run, (-1, self._answers))
        if since == self._since:  # another block of the same attempt: what it has taken is taken
            self._answers = answers
            return
        _known[run] = self._since, self._answers
        for seq in range(self._since + 1, run.seq + 1):
            yield f"pause/{seq}", _rows(run.interrupts) if seq == run.seq else []

    def _note(self, rows: list[JSON]) -> None:
        self._answers += [(digest, Resolution.from_json(found)) for digest, found in rows]

    def _enter(self) -> None:
        self._token = ANSWERS.set(self.take)

    def _questions(self, error: BaseException | None) -> tuple[Interrupt, ...]:
        """The questions that what was raised asks; none where it is, or holds, something else."""
        if self._token is not None:
            ANSWERS.reset(self._token)
        raised = list(_leaves(error)) if error is not None else []
        asked = [one.question(**self._asked) for one in raised if isinstance(one, Interrupted)]
        return tuple({one.content_digest: one for one in asked}.values()) if len(asked) == len(raised) else ()

    def _has_paused(self, suspended: Accepted | Replayed) -> bool:
        self.suspended = suspended
        return True

    def _frozen(self) -> InterruptState | None:
        return self._state() if self._state is not None else None


class AsyncGuard(Guard):
    """Makes one suspension of the `Interrupted` that leave the block: `async with guard(run): ...`.

    The block of a run ends with `Paused`; that of a `Thread` just ends, and `suspended` tells.
    """

    def __init__(
        self, where: Run[Any] | Thread[AsyncBroker], *, since: int = 0,
        state: Callable[[], InterruptState] | None = None, **asked: Any,
    ) -> None:  # fmt: skip
        super().__init__(asked, state, since)
        self._where: Run[Any] | Thread[AsyncBroker] = where

    async def __aenter__(self) -> Self:
        if isinstance(self._where, Run):
            for key, rows in self._pauses(self._where):
                self._note(await self._where.step(partial(_noted, rows), key=key))
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        questions, where = self._questions(error), self._where
        if not questions:
            return False
        if isinstance(where, Thread):
            return self._has_paused(
                await where.broker.suspend(where.agent, *questions, state=self._frozen(), **where.place())
            )
        if not where.is_paused:
            await where.suspend(*questions, state=self._frozen())
        raise _ended(where)


class BlockingGuard(Guard):
    """The same for a blocking run or broker: `with guard(run): ...`."""

    def __init__(
        self, where: BlockingRun[Any] | Thread[Broker], *, since: int = 0,
        state: Callable[[], InterruptState] | None = None, **asked: Any,
    ) -> None:  # fmt: skip
        super().__init__(asked, state, since)
        self._where: BlockingRun[Any] | Thread[Broker] = where

    def __enter__(self) -> Self:
        if isinstance(self._where, BlockingRun):
            for key, rows in self._pauses(self._where):
                self._note(self._where.step(partial(_noted_at_once, rows), key=key))
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        questions, where = self._questions(error), self._where
        if not questions:
            return False
        if isinstance(where, Thread):
            return self._has_paused(
                where.broker.suspend(where.agent, *questions, state=self._frozen(), **where.place())
            )
        if not where.is_paused:
            where.suspend(*questions, state=self._frozen())
        raise _ended(where)


@overload
def guard(
    where: Run[Any] | Thread[AsyncBroker], *, state: Callable[[], InterruptState] | None = None, **asked: Any
) -> AsyncGuard: ...
@overload
def guard(
    where: BlockingRun[Any] | Thread[Broker],
    *,
    state: Callable[[], InterruptState] | None = None,
    **asked: Any,
) -> BlockingGuard: ...
def guard(where: Any, *, state: Callable[[], InterruptState] | None = None, **asked: Any) -> Guard:
    """A guard of a leased run, or of a `Thread` that no worker holds: `async with` or, for blocking ones, `with`.

    `state` gives what is frozen with the pause; `asked` are further fields of its questions (`reviewers`, `labels`,
    `message`, `expires_in`). Errors that are no pause go through.
    """
    blocking = (
        isinstance(where.broker, Broker) if isinstance(where, Thread) else isinstance(where, BlockingRun)
    )
    made = BlockingGuard if blocking else AsyncGuard
    return made(where, state=state, **asked)


def guarded(handler: H) -> H:
    """The same handler of a run, async or plain, under a guard, for `worker.add` or as a decorator."""
    wrapped: Any
    if is_async(handler):

        @functools.wraps(handler)
        async def wrapped(run: Run[Any]) -> Any:
            async with guard(run):
                return await handler(run)
    else:

        @functools.wraps(handler)
        def wrapped(run: BlockingRun[Any]) -> Any:
            with guard(run):
                return handler(run)

    return wrapped  # type: ignore[no-any-return]


_known: WeakKeyDictionary[Run[Any] | BlockingRun[Any], tuple[int, Answers]] = WeakKeyDictionary()
"""By leased run, since which pause answers were read, and those that nobody has taken yet."""


async def _noted(rows: list[JSON]) -> JSON:
    return rows


def _noted_at_once(rows: list[JSON]) -> JSON:
    return rows


def _rows(interrupts: tuple[InterruptRecord, ...]) -> list[JSON]:
    return [[one.digest, one.resolution.to_json()] for one in interrupts if one.resolution is not None]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """What was raised, taken out of the groups it came in."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _ended(run: Run[Any] | BlockingRun[Any]) -> Paused:
    """What ends the handler of a run that has paused."""
    run._fault = Paused(run.id)  # noqa: SLF001 - the same house
    return Paused(run.id)
