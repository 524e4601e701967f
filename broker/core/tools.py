"""Tools: how a function may be called by an agent, and what is known of one call while it runs.

`@gated` and `@long_running` only describe; the run's journal acts on what they say.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from types import FunctionType
from typing import Any, Final, Literal, TypeVar, overload
from weakref import WeakKeyDictionary

from ..errors import InvalidInput, NotACall
from .answers import AnswerKind
from .limits import JSON, check_id
from .models import OnExpiry, OnMissed

F = TypeVar("F", bound=Callable[..., Any])


class Doubt(StrEnum):
    """What to do with a call that was begun and whose worker died: it may have run."""

    AGAIN = "again"
    """Run it again under the same key; the tool, or what it calls, must know the key."""
    ASK = "ask"
    """Ask a person, who is told that it may have run."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One function an agent may call, and what must happen around it.

    `verify`, where given, is asked with the call's key after a crash: it returns `Done(result)`, or `Pending(handle)`
    for a job that was started, or None for what did not happen, which is then run.
    """

    name: str
    function: Callable[..., Any]
    gated: bool = False
    long_running: bool = False
    reviewers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    offers: tuple[AnswerKind, ...] | None = None
    expires_in: timedelta | Literal["default"] | None = "default"
    on_expiry: OnExpiry | None = None
    message: str | Callable[..., str] | None = None
    completes_in: timedelta | Literal["default"] | None = "default"
    heartbeat: timedelta | None = None
    on_missed: OnMissed | None = None
    on_doubt: Doubt = Doubt.AGAIN
    verify: Callable[[str], Any] | None = None
    timeout: timedelta | None = None

    def fits(self, arguments: Mapping[str, JSON]) -> bool:
        """Whether the function can be called with these arguments at all. True where it does not say."""
        signature = _signature(self.function)
        if signature is None:
            return True
        try:
            signature.bind(**arguments)
        except TypeError:
            return False
        return True

    @property
    def asks(self) -> bool:
        """Whether its calls may make the run pause."""
        return self.gated or self.long_running or (self.on_doubt is Doubt.ASK and self.verify is None)

    @classmethod
    def of(cls, function: Any) -> "Tool":
        """The tool behind a function, decorated or plain."""
        if isinstance(function, Tool):
            return function
        known = getattr(function, "__broker_tool__", None)
        if isinstance(known, Tool):
            return known
        if not callable(function):
            raise InvalidInput("tools", "holds what cannot be called", "functions")
        name = getattr(function, "__name__", type(function).__name__)
        return cls(check_id("tool", name), function)


@dataclass(frozen=True, slots=True)
class Done:
    """What `verify` returns for a call that did run: its result."""

    result: JSON = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """What a long-running tool returns when it has started its job; `handle` is the job's own id, for people."""

    handle: JSON = field(default=None, repr=False)


class TimedOut(Exception):
    """A function did not return within its limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timed out after {seconds:g} s; it may be at work still")


@dataclass(frozen=True, slots=True)
class Call:
    """The call that is running: who it is for, and what makes a repeat of it harmless.

    `key` is the same on every attempt: give it to whatever takes an idempotency key. `fence` grows with every lease:
    refuse a lower one than you have seen. `token` completes a long-running call: `broker.complete(token, value)`.
    """

    id: str
    tool: str
    run_id: str
    session_id: str
    key: str
    fence: int
    attempt: int
    token: str = field(default="", repr=False)


_call: ContextVar[Call | None] = ContextVar("broker_call", default=None)


def current_call() -> Call:
    """The call that is running here. Raises `NotACall` outside a tool that a run's journal called."""
    found = _call.get()
    if found is None:
        raise NotACall
    return found


CURRENT: Final = _call
"""Set by the journal around a tool."""


def running_call() -> Call | None:
    """The call that is running here; None outside a tool."""
    return _call.get()


def _mark(function: F, **said: Any) -> F:
    known = Tool.of(function)
    function.__broker_tool__ = replace(known, **said)  # type: ignore[attr-defined]
    return function


def _decorator(function: F | None, **said: Any) -> Any:
    if function is not None:
        return _mark(function, **said)
    return lambda found: _mark(found, **said)


def tool(
    *,
    on_doubt: Doubt | None = None,
    verify: Callable[[str], Any] | None = None,
    timeout: timedelta | None = None,
) -> Callable[[F], F]:
    """The function as an inline tool: what to do after a crash in its middle, and how long it may run.

    What is not given stays as another decorator says; where none does, a call in doubt runs again.
    """
    given = {"on_doubt": on_doubt, "verify": verify, "timeout": timeout}
    said = {name: value for name, value in given.items() if value is not None}
    return lambda found: _mark(found, **said)


@overload
def gated(function: F, /) -> F: ...
@overload
def gated(
    *,
    reviewers: str | tuple[str, ...] = (),
    expires_in: timedelta | Literal["default"] | None = "default",
    offers: tuple[AnswerKind, ...] | None = None,
    on_expiry: OnExpiry | None = None,
    labels: tuple[str, ...] = (),
    message: str | Callable[..., str] | None = None,
    on_doubt: Doubt = Doubt.AGAIN,
    verify: Callable[[str], Any] | None = None,
    timeout: timedelta | None = None,
) -> Callable[[F], F]: ...
def gated(function: F | None = None, /, *, reviewers: str | tuple[str, ...] = (), **said: Any) -> Any:
    """The function as a tool that runs only after somebody has approved this very call.

    `reviewers` and `labels` say who is asked, `message` what they read (text, or a function of the arguments),
    `offers` whether they may edit: within the types of the parameters, where the extra `schema` is there. After
    `expires_in` (default: the namespace's, 24 h) it is denied, unless `on_expiry` says otherwise. `on_doubt` and
    `verify`: see `Doubt`.
    """
    if said.get("on_expiry") is OnExpiry.DEFAULT:
        raise InvalidInput("on_expiry", "needs a default answer, and a tool has none", "deny, cancel or wait")
    names = (reviewers,) if isinstance(reviewers, str) else tuple(reviewers)
    return _decorator(function, gated=True, reviewers=names, **said)


@overload
def long_running(function: F, /) -> F: ...
@overload
def long_running(
    *,
    expires_in: timedelta | Literal["default"] | None = "default",
    heartbeat: timedelta | None = None,
    on_missed: OnMissed | None = None,
    on_doubt: Doubt = Doubt.AGAIN,
    verify: Callable[[str], Any] | None = None,
    timeout: timedelta | None = None,
) -> Callable[[F], F]: ...
def long_running(
    function: F | None = None,
    /,
    *,
    expires_in: timedelta | Literal["default"] | None = "default",
    **said: Any,
) -> Any:
    """The function as a tool that starts a job elsewhere and returns `Pending`; its result comes by token.

    The run waits without a worker. Without a completion within `expires_in` (default: the namespace's, 24 h) the call
    fails. With a `heartbeat` the job has to tell that often that it still runs (`broker.heartbeat(token)`), from the
    pause on; one that misses it fails, or is rung for with `on_missed=OnMissed.RING`.
    """
    return _decorator(function, long_running=True, completes_in=expires_in, **said)


def registry(tools: Mapping[str, Any] | Sequence[Any]) -> dict[str, Tool]:
    """Tools by name, from a list of functions or a mapping of name to function."""
    if isinstance(tools, Mapping):
        return {name: replace(Tool.of(one), name=check_id("tool", name)) for name, one in tools.items()}
    found = {tool.name: tool for tool in map(Tool.of, tools)}
    if len(found) != len(tools):
        raise InvalidInput(
            "tools", "holds two of one name", "a name for each, or a mapping of names to tools"
        )
    return found


_SIGNATURES: Final[WeakKeyDictionary[Callable[..., Any], inspect.Signature]] = WeakKeyDictionary()
"""Those of functions that were called before: working one out costs more than the rest of a call."""


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """How a function is called; None where it does not say."""
    kept = isinstance(function, FunctionType)  # what else can be called may say something else the next time
    found = _SIGNATURES.get(function) if kept else None
    if found is None:
        try:
            found = inspect.signature(function)
        except (ValueError, TypeError):
            return None
        if kept:
            _SIGNATURES[function] = found
    return found


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
