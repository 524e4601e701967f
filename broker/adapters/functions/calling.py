"""Gated and long-running functions that are called like any other, inside the run that is being worked on."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from ..._async.run import Run
from ..._sync.run import Run as BlockingRun
from ...core import tools
from ...core.limits import JSON
from ...core.tools import Tool, is_async
from ...errors import InvalidInput, UnknownId

F = TypeVar("F", bound=Callable[..., Any])
D = TypeVar("D", bound=Callable[..., Any])

_RUN: Final[ContextVar[Run[Any] | BlockingRun[Any] | None]] = ContextVar("broker_run", default=None)


@contextmanager
def working_on(run: Run[Any] | BlockingRun[Any]) -> Iterator[None]:
    """Calls of gated and long-running functions in this block are calls of the run. `go_on` has done it already.

    For code that holds a run by `take` or `adopt`.
    """
    reset = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(reset)


def _takes_what(_: D) -> Callable[[Callable[..., Any]], D]:
    """Says that a decorator is called as another one is."""
    return lambda found: cast("D", found)


@_takes_what(tools.gated)
def gated(function: F | None = None, /, **said: Any) -> Any:
    """The function, to be called as ever: each call runs once somebody has approved it, and once only.

    It takes what `broker.gated` takes (`reviewers`, `expires_in`, `offers`, `on_expiry`, `message` ...), and may stand
    in a list of tools as well. A call leaves the job by `Paused`, and the next job that goes on with the run gets
    what it returned. One that was rejected, or that nobody answered, raises `CallFailed`. Arguments are JSON.
    Called outside a run it raises `UnknownId`, and nothing runs.
    """
    return _decorated(tools.gated, function, said)


@_takes_what(tools.long_running)
def long_running(function: F | None = None, /, **said: Any) -> Any:
    """The function, to be called as ever: it starts a job elsewhere, and the call returns what that job came to.

    It takes what `broker.long_running` takes (`expires_in` ...) and returns `Pending`; whoever has the token of the
    call completes it. In between the run waits, and no job system holds anything for it. As `gated` else.
    """
    return _decorated(tools.long_running, function, said)


def _decorated(mark: Callable[..., Any], function: F | None, said: dict[str, Any]) -> Any:
    if function is None:
        return lambda found: _called(mark(**said)(found))
    return _called(mark(function))


def _called(function: F) -> Any:
    """The marked function, whose calls go through the journal of the run that is being worked on."""
    signature = inspect.signature(function)

    def made(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        run = _RUN.get()
        if run is None:
            raise UnknownId("run that is being worked on", function.__name__)
        if is_async(function) is not isinstance(run, Run):
            raise InvalidInput(
                function.__name__,
                "is plain in an async run, or async in a blocking one",
                "one of the same kind",
            )
        return run.call(Tool.of(function), _arguments(signature, args, kwargs))

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await made(args, kwargs)

    @functools.wraps(function)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        return made(args, kwargs)

    return call if is_async(function) else blocking


def _arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, JSON]:
    """The arguments by their names, as somebody who is asked reads them. What does not fit raises `TypeError`."""
    bound = signature.bind(*args, **kwargs)
    found: dict[str, JSON] = {}
    for name, value in bound.arguments.items():
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                found |= value
            case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.POSITIONAL_ONLY:
                raise InvalidInput(name, "has no name in a call", "parameters that can be given by name")
            case _:
                found[name] = value
    return found
