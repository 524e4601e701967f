"""What is allowed: one frozen set of limits, and the checks that hold values to it before anything is written.

Every check raises `InvalidInput` that names the field, the fault and what is allowed (P12), never the value.
"""

import logging
import math
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from ..errors import InvalidInput

log: logging.Logger = logging.getLogger("broker")

JSON: TypeAlias = Any
"""Any JSON value. Spelled `Any`: a recursive type would refuse `dict[str, int]` where a JSON object is meant."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes a namespace accepts. Sizes are of the encoded record before compression, in bytes."""

    id_chars: int = 256
    """Longest id (session, run, interrupt, call), in characters."""
    name_chars: int = 64
    """Longest queue, agent, build or namespace name, in characters."""
    state_bytes: int = 4 * 1024 * 1024
    """Largest InterruptState. Warned about at half."""
    record_bytes: int = 1024 * 1024
    """Largest single interrupt, answer, input or result. Warned about at half."""
    interrupts_per_suspension: int = 64
    depth: int = 64
    """Deepest nesting of lists and objects in one JSON value."""
    journal_entries: int = 10_000
    """Most entries in one run's journal; `run.checkpoint(state)` makes room. Warned about at half."""
    journal_bytes: int = 64 * 1024 * 1024
    """Most bytes in one run's journal."""
    labels: int = 32
    """Most labels, reviewers or groups on one value."""


LIMITS: Final = Limits()

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]*")
_BAD_IN_ID = re.compile(r"[\x00-\x1f\x7f-\x9f{}\ud800-\udfff]")
_SURROGATE = ("holds half a surrogate pair", "well-formed text")
_ID_RULE = "characters other than braces and control characters, no space at either end"


def check_id(field: str, value: str, limits: Limits = LIMITS) -> str:
    """`value`, an id that users or frameworks bring; it may hold ':' and '/', since it is the last part of a key."""
    allowed = f"1 to {limits.id_chars} {_ID_RULE}"
    if not isinstance(value, str):
        raise InvalidInput(field, "is not text", allowed)
    if not value or len(value) > limits.id_chars:
        raise InvalidInput(field, f"has {len(value)} characters" if value else "is empty", allowed)
    if _BAD_IN_ID.search(value):
        raise InvalidInput(field, "holds a brace, a control character or half a surrogate pair", allowed)
    if value != value.strip():
        raise InvalidInput(field, "begins or ends with white space", allowed)
    return value


def check_name(field: str, value: str, limits: Limits = LIMITS) -> str:
    """`value`, the name of a queue, an agent or a build."""
    return _check_word(
        field,
        value,
        _NAME,
        "a letter or digit, then letters, digits, '_', '.' or '-', {n} at most",
        limits,
    )


def check_namespace(value: str, limits: Limits = LIMITS) -> str:
    """`value`, the name of a namespace; stricter than other names, since access rules are patterns over it."""
    rule = "a lower-case letter or digit, then lower-case letters, digits, '_' or '-', {n} at most"
    return _check_word("namespace", value, _NAMESPACE, rule, limits)


def _check_word(field: str, value: str, pattern: re.Pattern[str], rule: str, limits: Limits) -> str:
    allowed = rule.format(n=limits.name_chars)
    if not isinstance(value, str):
        raise InvalidInput(field, "is not text", allowed)
    if len(value) > limits.name_chars:
        raise InvalidInput(field, f"has {len(value)} characters", allowed)
    if not pattern.fullmatch(value):
        raise InvalidInput(field, "is empty" if not value else "has a character that is not allowed", allowed)
    return value


def check_count(field: str, count: int, most: int) -> None:
    """Nothing, or `InvalidInput` when a list is longer than `most`."""
    if count > most:
        raise InvalidInput(field, f"has {count} entries", f"at most {most}")


def check_range(field: str, number: int, least: int, most: int) -> None:
    """Nothing, or `InvalidInput` when a number is not from `least` to `most`."""
    if not least <= number <= most:
        raise InvalidInput(field, "is out of range", f"{least} to {most}")


def check_size(field: str, size: int, most: int) -> None:
    """Nothing, or `InvalidInput` when an encoded record is larger than `most` bytes.

    At more than half there is a warning in the log: whoever writes it learns of the limit before it is met.
    """
    if size > most:
        raise InvalidInput(field, f"takes {size} bytes", f"at most {most} bytes")
    if size > most // 2:
        log.warning("%s takes %d bytes, more than half of the %d that are allowed", field, size, most)


def check_text(field: str, value: str) -> str:
    """`value`, free text; only half a surrogate pair is refused, since it has no bytes."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            value = ""
        if not value:
            raise InvalidInput(field, *_SURROGATE)
    return value


class _Fault(Exception):
    """A fault deep inside a JSON value; the path to it is collected on the way out."""

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(problem, allowed)
        self.problem = problem
        self.allowed = allowed
        self.path: list[str] = []


def check_json(field: str, value: JSON, limits: Limits = LIMITS) -> JSON:
    """A copy of `value` made of plain JSON types only, which later changes to the original cannot reach.

    Tuples become lists. Refused, with the path in the error's field (`payload.a[3]`): NaN and infinities, integers
    beyond 64 bits, keys that are not text, lone surrogates, other types, nesting deeper than `limits.depth`.
    """
    try:
        return _copy(value, limits.depth)
    except _Fault as fault:
        path, problem, allowed = "".join(reversed(fault.path)), fault.problem, fault.allowed
    raise InvalidInput(field + path, problem, allowed)


def _copy(value: JSON, depth: int) -> JSON:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else _refuse("is beyond 64 bits", "-2^63 to 2^64-1")
    if kind is float:
        return value if math.isfinite(value) else _refuse("is NaN or infinite", "a finite number")
    if isinstance(value, dict | list | tuple):
        if depth <= 0:
            _refuse("is nested too deep", "fewer levels of lists and objects")
        return _copy_object(value, depth - 1) if isinstance(value, dict) else _copy_array(value, depth - 1)
    return _copy_odd(value)


def _copy_object(value: dict[JSON, JSON], depth: int) -> dict[str, JSON]:
    copy = {}
    key: JSON = ""
    try:
        for key, item in value.items():
            if type(key) is not str:
                _refuse("is a key that is no text", "text keys")
            if not key.isascii():
                _text(key)
            # Plain ASCII text is most of what there is: looking here saves a call.
            copy[key] = item if type(item) is str and item.isascii() else _copy(item, depth)
    except _Fault as fault:
        fault.path.append(f".{_shown(key)}")
        raise
    return copy


def _copy_array(value: list[JSON] | tuple[JSON, ...], depth: int) -> list[JSON]:
    copy: list[JSON] = []
    try:
        for item in value:
            copy.append(_copy(item, depth))  # noqa: PERF401 - the length so far is the place of a fault
    except _Fault as fault:
        fault.path.append(f"[{len(copy)}]")
        raise
    return copy


def _shown(key: JSON) -> str:
    return str(key)[:40].encode(errors="replace").decode()


def _copy_odd(value: JSON) -> JSON:
    """Subclasses of the plain types (an enum of text, say) as what they are; everything else is refused."""
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        return _copy(int(value), 0)
    if isinstance(value, float):
        return _copy(float(value), 0)
    return _refuse(f"is a {type(value).__name__[:40]}", "null, true, false, numbers, text, lists and objects")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(*_SURROGATE)
    return value


def _refuse(problem: str, allowed: str) -> NoReturn:
    raise _Fault(problem, allowed)
