"""Values of any class of ours with a secret in every place that may hold somebody's words."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime

import broker
from broker.core import fields
from broker.core.outcomes import Told
from broker.core.shape import Model, Tagged

SECRET: Final = "hunter2-canary"
DEEP: Final[dict[str, Any]] = {"a": [{"token": SECRET}], "note": SECRET}
_DEEPEST: Final = 6
NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)

# How fields travel and what a connection is made of: neither holds what anybody said.
_MACHINERY: Final = ("broker.core.shape.Slot", "broker.store.connect.Socket")

# The command line, its demo and the replay handle what people give them by hand; their values are never logged. The
# adapters are imported where their frameworks are.
_APART: Final = (
    "broker.adapters",
    "broker.cli",
    "broker.replay",
    "broker.testing",
    "broker.__main__",
    "broker.embedded.__main__",
)


def classes() -> list[type]:
    """Every value class of the library: models and dataclasses, public or not."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(broker.__path__, "broker.", onerror=_is_apart):
        if not module.name.startswith(_APART) and not module.name.endswith("__main__"):
            for thing in vars(importlib.import_module(module.name)).values():
                if isinstance(thing, type) and thing.__module__ == module.name and is_value(thing):
                    found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return [thing for name, thing in found.items() if name not in _MACHINERY]


def _is_apart(name: str) -> None:
    """A package that cannot be imported here is one of those."""
    assert name.startswith(_APART)


def is_value(kind: type) -> bool:
    """Whether it is one of ours that is made, and not only built upon."""
    if issubclass(kind, BaseException) or kind in (Model, Tagged, Told):
        return False
    return dataclasses.is_dataclass(kind) or issubclass(kind, Model) or _is_named_tuple(kind)


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def build(kind: type, depth: int = 0) -> Any:
    """A value of a class, every field filled, whatever its own rules are about what goes with what."""
    if issubclass(kind, Model):
        made = kind.__new__(kind)
        values = {name: _fill(hint, depth + 1) for name, hint in _parts(kind).items()}
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", set(values))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made
    hints = get_type_hints(kind, include_extras=True)
    if _is_named_tuple(kind):
        return kind(**{name: _fill(hint, depth + 1) for name, hint in hints.items()})
    assert dataclasses.is_dataclass(kind)
    given = {one.name: _fill(hints[one.name], depth + 1) for one in dataclasses.fields(kind) if one.init}
    return kind(**given)


@dataclasses.dataclass(frozen=True)
class Marked:
    """A type, whether its text is free words (an id or a name is not), and whether it is a word that is to be shown."""

    hint: Any
    free: bool = False
    shown: bool = False


def _parts(kind: type[Model]) -> dict[str, Marked]:
    return {
        name: Marked(field.annotation, _is_free(field.metadata), name in kind.SHOWN)
        for name, field in kind.model_fields.items()
    }


def is_free_text(kind: type[Model], name: str) -> bool:
    """Whether a field of a model holds somebody's own words."""
    return name in kind.model_fields and _is_free(_checks(kind.model_fields[name].annotation, kind, name))


def _checks(annotation: Any, kind: type[Model], name: str) -> list[Any]:
    inner = [one for part in get_args(annotation) for one in getattr(part, "__metadata__", ())]
    return [*inner, *kind.model_fields[name].metadata]


def _is_free(checks: Iterable[Any]) -> bool:
    return fields._checked_text in [getattr(one, "func", None) for one in checks]


def _fill(hint: Any, depth: int) -> Any:
    free, shown = False, False
    if isinstance(hint, Marked):
        hint, free, shown = hint.hint, hint.free, hint.shown
    origin, args = get_origin(hint), get_args(hint)
    if hasattr(hint, "__metadata__"):
        return _fill(Marked(args[0], free or _is_free(hint.__metadata__), shown), depth)
    if hint is Any or isinstance(hint, TypeVar):
        return DEEP
    if origin in (Union, UnionType):
        words = [one for one in args if get_origin(one) is Literal]
        return _fill(Marked((words or [one for one in args if one is not NoneType])[0], free, shown), depth)
    if origin is Literal:
        return args[0]
    return (
        _filled_one(hint, depth, free=free and not shown)
        if origin is None
        else _filled_many(origin, args, depth)
    )


def _filled_many(origin: Any, args: tuple[Any, ...], depth: int) -> Any:
    if not isinstance(origin, type) or not issubclass(origin, tuple | list | Mapping | Sequence):
        return build(origin, depth) if dataclasses.is_dataclass(origin) else print
    if depth > _DEEPEST:
        return origin() if origin in (tuple, list, dict) else ()
    if issubclass(origin, Mapping):
        return DEEP if args[1] is Any else {"x": _fill(args[1], depth)}
    if issubclass(origin, list):
        return [_fill(args[0], depth)]
    if origin is tuple and Ellipsis not in args:
        return tuple(_fill(one, depth) for one in args)
    return (_fill(args[0], depth),)


def _filled_one(hint: Any, depth: int, *, free: bool) -> Any:
    plain: dict[Any, Any] = {
        str: SECRET if free else "x", bytes: SECRET.encode(), int: 1, float: 1.0, bool: True, datetime: NOW,
        AwareDatetime: NOW, timedelta: timedelta(1), dict: DEEP, Path: Path("x"),
    }  # fmt: skip
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if not isinstance(hint, type) or hint is NoneType or depth > _DEEPEST:
        return None
    below: list[type] = hint.__subclasses__()
    kinds = [one for one in below if is_value(one)] or ([hint] if is_value(hint) else [])
    return build(kinds[0], depth) if kinds else None
