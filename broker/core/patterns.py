"""How long a schema may take: it may be somebody else's, and one that never ends would stop the whole process.

A pattern can be made so that trying it takes years, and references so that following them does. Both are given up on.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import monotonic
from typing import Any, Final

from .limits import JSON

PATIENCE: Final = 0.5
"""How many seconds the rules of one schema may take together."""

_ends: ContextVar[float] = ContextVar("ends")


@contextmanager
def patience() -> Generator[None]:
    """The block in which a schema of `patient` is held against a value; `TimeoutError` where that takes too long."""
    before = _ends.set(monotonic() + PATIENCE)
    try:
        yield
    finally:
        _ends.reset(before)


@lru_cache(maxsize=16)
def patient(validator: Any) -> Any:
    """A class of validators, with the rules in it that could go on for ever replaced by ones that give up."""
    from jsonschema.validators import extend  # noqa: PLC0415 - optional extra

    rules = {"pattern": _pattern, "patternProperties": _pattern_properties,
             "additionalProperties": _additional_properties}  # fmt: skip
    known = validator.VALIDATORS
    limited = {
        name: _in_time(known[name]) for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in known
    }
    return extend(validator, {**rules, **limited})  # type: ignore[no-untyped-call]


def _left() -> float:
    left = _ends.get() - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _in_time(rule: Callable[..., Any]) -> Callable[..., Any]:
    def limited(validator: Any, value: JSON, instance: JSON, schema: JSON) -> Any:
        _left()
        return rule(validator, value, instance, schema)

    return limited


def _fits(pattern: str, text: str) -> bool:
    import regex  # noqa: PLC0415 - optional extra

    return regex.search(pattern, text, timeout=_left()) is not None


def _error(message: str) -> Any:
    from jsonschema import ValidationError  # noqa: PLC0415 - optional extra

    return ValidationError(message)


def _pattern(_: Any, pattern: str, instance: JSON, __: JSON) -> Generator[Any]:
    if isinstance(instance, str) and not _fits(pattern, instance):
        yield _error("does not fit the pattern")


def _pattern_properties(validator: Any, patterns: dict[str, JSON], instance: JSON, _: JSON) -> Generator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        for name, one in instance.items():
            if _fits(pattern, name):
                yield from validator.descend(one, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, rule: JSON, instance: JSON, schema: JSON) -> Generator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, one in instance.items():
        if name in known or any(_fits(pattern, name) for pattern in patterns):
            continue
        if rule is False:
            yield _error("has a property that is not allowed")
        elif isinstance(rule, dict):
            yield from validator.descend(one, rule, path=name)
