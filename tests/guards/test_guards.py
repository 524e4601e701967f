"""Every guard of the scripts is left out in turn, and the suite must notice.

A guard names what shows it: a row of the protocol's table (`guards=` in tests/scripts/rows) or tests that take a world
(`@shows_guard`). They are run here as they are, on scripts rendered without the guard, and have to fail.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.store import scripts
from broker.store.scripts import Rendering
from broker.testing import RunningServer
from tests import scripts as suite
from tests.scripts import test_table
from tests.scripts.guarded import SHOWN
from tests.scripts.rows import GUARDED
from tests.scripts.world import World

for path in sorted(Path(suite.__file__).parent.glob("test_*.py")):
    importlib.import_module(f"{suite.__name__}.{path.stem}")

SOURCES = (*scripts.names(), *(path.stem for path in Path(scripts.__file__).parent.glob("lua/_*.lua")))
GUARDS = sorted({guard for name in SOURCES for guard in scripts.guards(name)})
ROWS = {row.key: row for row in test_table.ALL}


def shown_by(guard: str) -> Iterator[Callable[[World], None]]:
    """What shows a guard, as functions of a world."""
    if guard in GUARDED:
        yield lambda world: test_table.check(world, ROWS[GUARDED[guard]])
    yield from SHOWN.get(guard, ())


def test_every_guard_is_shown_and_nothing_else() -> None:
    assert sorted({*GUARDED, *SHOWN}) == GUARDS


@pytest.mark.parametrize("guard", GUARDS)
def test_the_suite_notices_when_a_guard_is_gone(
    guard: str, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    for show in shown_by(guard):
        world = World(server.url, new_namespace(), Rendering(without=guard, clock=True))
        # Whatever it fails by, it was noticed.
        with pytest.raises((Exception, pytest.fail.Exception)), closing(world):
            show(world)
