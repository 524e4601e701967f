"""Wire version 1: how a record becomes bytes and comes back.

One version byte, one codec byte (bit 0: zlib, bit 1: sealed, reserved), then a MessagePack map with text keys.
Scripts on the server never look inside. Which keys a record has is said by its class; keys of another version pass
through. Reading never runs code, never unpacks more than a bound, and refuses a higher version loudly.
"""

import zlib
from typing import Final

import msgpack

from ..errors import Corrupt, InvalidInput
from .limits import JSON, check_size

WIRE_VERSION: Final = 1
COMPRESSED: Final = 0b01
SEALED: Final = 0b10
UNPACKED_MOST: Final = 64 * 1024 * 1024
"""No record may unpack to more bytes than this, whatever its limit was when it was written."""

_HEAD: Final = 2
_PLAIN_HEAD: Final = bytes((WIRE_VERSION, 0))
_ZLIB_HEAD: Final = bytes((WIRE_VERSION, COMPRESSED))
_CODECS: Final = {0: "", COMPRESSED: "compressed", SEALED: "sealed", COMPRESSED | SEALED: "sealed"}


def encode(
    record: dict[str, JSON], *, compress_over: int = 1024, most: int | None = None, field: str = "record"
) -> bytes:
    """The bytes of a record. Bodies over `compress_over` bytes are compressed where that makes them smaller.

    Raises `InvalidInput` when the body is larger than `most` bytes or holds what MessagePack cannot.
    """
    try:
        plain = body(record)
    except (TypeError, ValueError, OverflowError):
        plain = b""
    if not plain:
        raise InvalidInput(field, "holds a value that cannot be stored", "plain JSON values and bytes")
    if most is not None:
        check_size(field, len(plain), most)
    if len(plain) > compress_over:
        packed = zlib.compress(plain, 1)
        if len(packed) < len(plain):
            return _ZLIB_HEAD + packed
    return _PLAIN_HEAD + plain


def body(value: JSON) -> bytes:
    """A plain value as MessagePack: the same bytes only for the same value, 1.0 and 1 apart."""
    packed: bytes = msgpack.packb(value, use_bin_type=True, strict_types=True)
    return packed


def decode(data: bytes, *, key: str = "") -> dict[str, JSON]:
    """The record behind some bytes; raises `Corrupt`, with `key` for the message, when they cannot be read."""
    if len(data) < _HEAD:
        raise Corrupt(key, f"it has only {len(data)} bytes")
    version, codec = data[0], data[1]
    if not 0 < version <= WIRE_VERSION:
        raise Corrupt(key, f"it has wire version {version}, this release reads up to {WIRE_VERSION}")
    if codec not in _CODECS:
        raise Corrupt(key, f"its codec byte {codec} is not known")
    if codec & SEALED:
        raise Corrupt(key, "it is sealed, and this release cannot open sealed records")
    plain = _inflate(data, key) if codec & COMPRESSED else memoryview(data)[_HEAD:]
    try:
        record = msgpack.unpackb(plain, raw=False, strict_map_key=True, ext_hook=_no_extension)
    except (ValueError, TypeError, RecursionError, OverflowError):
        record = None
    if not isinstance(record, dict) or not set(map(type, record)) <= {str}:
        raise Corrupt(key, "its body is no MessagePack map with text keys")
    return record


def _inflate(data: bytes, key: str) -> bytes:
    machine = zlib.decompressobj()
    try:
        body = machine.decompress(memoryview(data)[_HEAD:], UNPACKED_MOST)
    except zlib.error:
        machine, body = zlib.decompressobj(), b""
    if machine.unconsumed_tail:
        raise Corrupt(key, f"it unpacks to more than {UNPACKED_MOST} bytes")
    if not machine.eof or machine.unused_data:
        raise Corrupt(key, "its compressed body is broken")
    return body


def _no_extension(code: int, _data: bytes) -> JSON:
    msg = f"extension type {code}"
    raise ValueError(msg)
