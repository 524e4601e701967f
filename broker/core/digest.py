"""Digests: canonical JSON (RFC 8785) and the hashes that bind an answer to what was seen.

One extension to RFC 8785: integers beyond 2^53 keep their exact digits instead of being refused, because ids of that
size are common in arguments and rounding them would give two different actions one digest.
"""

import hashlib
import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Final

from .limits import JSON

DIGEST_VERSION: Final = 1
"""The version of the action digest, its first characters."""

_UNIT: Final = b"\x1f"
_PLAIN_UP_TO: Final = 21
_PLAIN_DOWN_TO: Final = -6
_STANDARD: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
_ODD_FLOAT: Final = re.compile(r"[0-9](?:\.0(?![0-9])|e[+-])")
"""What a float may look like that ECMAScript prints in another way; a text that looks like it does no harm."""


def _quick() -> Callable[[JSON], str]:
    """The standard encoder, set up once: its own way sets it up for every value anew, which costs as much again."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _STANDARD.encode
    sort, skip, nan = True, False, False
    parts = make(None, _STANDARD.default, encode_basestring, None, ":", ",", sort, skip, nan)
    return lambda value: "".join(parts(value, 0))


_QUICK: Final = _quick()


def canonical_json(value: JSON) -> bytes:
    """`value` (plain JSON, as `check_json` gives it) as RFC 8785 bytes: equal values, equal bytes; 1.0 is 1."""
    quick = _QUICK(value)
    # The fast encoder differs in how it prints whole and very large or small floats, and in the order of keys outside
    # ASCII, and in nothing else.
    if quick.isascii() and not _ODD_FLOAT.search(quick):
        return quick.encode()
    out: list[str] = []
    _emit(value, out)
    return "".join(out).encode()


def action_digest(tool: str, arguments: JSON) -> str:
    """`1:` and the SHA-256 of tool, U+001F and the canonical arguments (A12: key order does not matter)."""
    return f"{DIGEST_VERSION}:{content_digest(tool.encode() + _UNIT + canonical_json(arguments))}"


def content_digest(data: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hex characters."""
    return hashlib.sha256(data).hexdigest()


def changed_paths(before: JSON, after: JSON, at: str = "arguments") -> tuple[str, ...]:
    """Where two JSON values differ, as paths like `arguments.to[0]`; names and places only, never values (F17)."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(before.keys() | after.keys())
        paths = [
            changed_paths(before[key], after[key], f"{at}.{key}")
            if key in before and key in after
            else (f"{at}.{key}",)
            for key in keys
        ]
        return tuple(path for found in paths for path in found)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return tuple(
            path
            for place, (old, new) in enumerate(zip(before, after, strict=True))
            for path in changed_paths(old, new, f"{at}[{place}]")
        )
    return () if canonical_json(before) == canonical_json(after) else (at,)


def _emit(value: JSON, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif value is None:
        out.append("null")
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, int):
        out.append(str(value))
    elif isinstance(value, float):
        out.append(_number(value))
    elif isinstance(value, dict):
        _emit_object(value, out)
    else:
        mark = "["
        for item in value:
            out.append(mark)
            _emit(item, out)
            mark = ","
        out.append("[]" if mark == "[" else "]")


def _emit_object(value: dict[str, JSON], out: list[str]) -> None:
    # RFC 8785 sorts by UTF-16 code units; code points give the same order unless a key leaves the basic plane.
    plain = all(key.isascii() for key in value)
    mark = "{"
    for key in sorted(value) if plain else sorted(value, key=lambda key: key.encode("utf-16-be")):
        out.append(f"{mark}{encode_basestring(key)}:")
        _emit(value[key], out)
        mark = ","
    out.append("{}" if mark == "{" else "}")


def _number(value: float) -> str:
    """A double as ECMAScript prints it: the shortest digits that read back, plain between 1e-7 and 1e21."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # The value is 0.digits times ten to the power of `point`.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return sign + _place(digits.rstrip("0"), point)


def _place(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _PLAIN_UP_TO:
        return digits + "0" * (point - count)
    if 0 < point <= _PLAIN_UP_TO:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_DOWN_TO < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"
