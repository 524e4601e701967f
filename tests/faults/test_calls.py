"""The lists of calls are whole: every script is sent by one, and every command and read is made by one."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, get_origin, get_type_hints

from broker.store import namespace as namespaces
from broker.store.commands import address, answers, entries, facts, inputs, pauses, reads, runs, sweep
from broker.store.commands.values import Command, Read
from broker.store.scripts import names
from broker.testing import RunningServer

from .calls import CALLS
from .calls_that_read import READS
from .world import new_world

MODULES = (address, answers, entries, facts, inputs, pauses, reads, runs, sweep, namespaces)


def makers(module: ModuleType) -> Iterator[tuple[str, CodeType]]:
    """The functions of a module that make something to send."""
    for name, made in vars(module).items():
        if getattr(made, "__module__", "") != module.__name__ or not hasattr(made, "__code__"):
            continue
        if not name.startswith("_") and get_origin(get_type_hints(made)["return"]) in (Command, Read):
            yield f"{module.__name__.rpartition('.')[2]}.{name}", made.__code__


@contextmanager
def noting(codes: set[CodeType]) -> Iterator[None]:
    """Adds the code of whatever is called meanwhile, in any thread that begins meanwhile too."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_R05_every_script_is_sent_by_a_call_of_the_list() -> None:
    """Off: a call of the list that alone sends its script is left out. That it sends it is seen when it is lost."""
    assert {call.script for call in CALLS.values()} == set(names())


async def test_R05_every_command_and_read_is_made_by_a_call_of_the_lists(
    server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """Off: a call that alone makes a command or a read is left out of its list."""
    called = set[CodeType]()
    for call in (CALLS | READS).values():
        async with new_world(server.url, new_namespace()) as w:
            await call.prepare(w)
            with noting(called):
                await call.act(w)
    never = [name for module in MODULES for name, code in makers(module) if code not in called]
    assert never == []
