"""The front doors. Changing `exports.txt` is a reviewed act: a name added is a promise, one removed breaks users.

A bare name is of `broker`; `agui.Interrupt` is of `broker.interop.agui`, and so for each system there.
 `adapters.langgraph.resumable` is of a
module that cannot be imported here, since its framework is in an environment of its own: its list is read.
"""

import ast
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import broker
from broker import adapters, interop

FROZEN = Path(__file__).with_name("exports.txt").read_text().split()
SYSTEMS = [found.name for found in iter_modules(interop.__path__)]
DOORS = {
    "": broker,
    "adapters.": adapters,
    **{f"{name}.": import_module(f"broker.interop.{name}") for name in SYSTEMS},
}


def listed(path: Path) -> list[str]:
    """The public names of a module, as its text lists them."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


ADAPTED = [
    f"adapters.{found.name}.{name}"
    for found in iter_modules(adapters.__path__)
    if not found.name.startswith("_")
    for name in listed(Path(adapters.__path__[0], found.name, "__init__.py") if found.ispkg
                       else Path(adapters.__path__[0], f"{found.name}.py"))
]  # fmt: skip
each_door = pytest.mark.parametrize("door", DOORS.values(), ids=lambda door: door.__name__)


def test_the_list_of_exports_is_frozen() -> None:
    opened = [f"{prefix}{name}" for prefix, door in DOORS.items() for name in door.__all__]
    assert sorted(opened + ADAPTED) == FROZEN


def test_no_name_is_listed_twice_and_the_list_is_sorted() -> None:
    assert sorted(set(FROZEN)) == FROZEN


@each_door
def test_everything_listed_exists(door: ModuleType) -> None:
    assert [name for name in door.__all__ if not hasattr(door, name)] == []


@each_door
def test_nothing_else_is_public(door: ModuleType) -> None:
    public = {name for name, value in vars(door).items() if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(door, name), ModuleType)}
    assert public - modules - set(door.__all__) == set()


@each_door
def test_everything_listed_is_documented(door: ModuleType) -> None:
    things = {name: getattr(door, name) for name in door.__all__ if not name.startswith("__")}
    classes = {name: thing for name, thing in things.items() if isinstance(thing, type) or callable(thing)}
    assert [name for name, thing in classes.items() if not (thing.__doc__ or "").strip()] == []


def test_the_front_door_does_not_open_those_of_the_systems() -> None:
    assert [name for name in SYSTEMS if f"broker.interop.{name}" in Path(broker.__file__).read_text()] == []
