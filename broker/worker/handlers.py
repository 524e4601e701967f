"""What a worker calls for an agent: async or plain functions of a run, with their input as the type they name.

A plain function runs in a thread and gets a run whose methods block, over a connection of its own.
"""

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from .._async._runtime import in_thread
from .._async.run import Run
from .._sync.link import Link as BlockingLink
from .._sync.run import Run as BlockingRun
from ..core.limits import check_name
from ..errors import BuildMismatch, InvalidInput

Handler = Callable[[Any], Any]
"""An async function of a `Run`, or a plain one of a blocking run."""

R = TypeVar("R", Run[Any], BlockingRun[Any])

SHARED = ("input", "metadata", "state", "interrupts", "cut", "checkpointed", "_old")


@dataclass(frozen=True, slots=True)
class Agent:
    """One registered agent: its name, its handler, and how its input is read (None: as it is).

    `builds` are those whose runs it goes on with, besides the worker's own.
    """

    name: str
    handler: Handler
    adapter: TypeAdapter[Any] | None
    builds: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, handler: Handler, builds: Sequence[str] | None = None) -> "Agent":
        """The agent behind a function; `Run[Question]` as its parameter's annotation says what the input is.

        Without `builds` they are the handler's own, where it has some.
        """
        check_name("agent", name)
        if not callable(handler):
            raise InvalidInput("handler", "cannot be called", "a function of one Run, async or not")
        found = getattr(handler, "builds", ()) if builds is None else builds
        return cls(name, handler, _adapter(handler), tuple(check_name("builds", one) for one in found))

    def check_build(self, run_id: str, pinned: str | None, own: str | None) -> None:
        """Nothing for a run that may be gone on with here; raises `BuildMismatch` for one of another build."""
        if pinned is not None and pinned not in (own, *self.builds):
            builds = " or ".join(repr(one) for one in dict.fromkeys((own, *self.builds)) if one)
            raise BuildMismatch(run_id, f"build {pinned!r}", f"build {builds}" if builds else "no build")

    def read(self, run: R) -> R:
        """The run, with its input as the type that the handler names. Raises `InvalidInput` where it does not fit."""
        if self.adapter is not None:
            run.input = _read(self.adapter, run.input)
        return run

    async def call(self, run: Run[Any], blocking: BlockingLink) -> Any:
        """What the handler returns. A plain function runs in a thread, so that it may block."""
        self.read(run)
        if inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(
            type(self.handler).__call__
        ):
            return await self.handler(run)
        twin = _blocking(run, blocking)
        try:
            return await in_thread(self.handler, twin)
        finally:
            run.is_held = run.is_held and twin.is_held
            run._fault = twin._fault  # noqa: SLF001


def _blocking(run: Run[Any], link: BlockingLink) -> BlockingRun[Any]:
    """The same leased run with methods that block."""
    twin: BlockingRun[Any] = BlockingRun(link, run._leased)  # noqa: SLF001 - the same house
    for name in SHARED:
        setattr(twin, name, getattr(run, name))
    twin._renewal = run._renewal  # noqa: SLF001
    return twin


def _adapter(handler: Handler) -> TypeAdapter[Any] | None:
    try:
        hints = typing.get_type_hints(handler)
    except (NameError, TypeError):
        return None
    for hint in hints.values():
        if typing.get_origin(hint) in (Run, BlockingRun):
            (wanted,) = typing.get_args(hint)
            return None if wanted is Any else TypeAdapter(wanted)
    return None


def _read(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        fault = InvalidInput(
            f"input.{place}" if place else "input", "does not fit what the agent takes", first["msg"]
        )
    raise fault
