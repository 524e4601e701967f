"""The front door. Changing `exports.txt` is a reviewed act: a name added is a promise, one removed breaks users."""

from pathlib import Path
from types import ModuleType

import broker

FROZEN = Path(__file__).with_name("exports.txt").read_text().split()


def test_the_list_of_exports_is_frozen() -> None:
    assert sorted(broker.__all__) == FROZEN


def test_no_name_is_listed_twice_and_the_list_is_sorted() -> None:
    assert sorted(set(FROZEN)) == FROZEN


def test_everything_listed_exists() -> None:
    assert [name for name in broker.__all__ if not hasattr(broker, name)] == []


def test_nothing_else_is_public() -> None:
    public = {name for name, value in vars(broker).items() if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(broker, name), ModuleType)}
    assert public - modules - set(broker.__all__) == set()


def test_everything_listed_is_documented() -> None:
    things = {name: getattr(broker, name) for name in broker.__all__ if not name.startswith("__")}
    classes = {name: thing for name, thing in things.items() if isinstance(thing, type) or callable(thing)}
    assert [name for name, thing in classes.items() if not (thing.__doc__ or "").strip()] == []
