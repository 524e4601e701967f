"""The envelope: one version byte, one codec byte, a MessagePack map."""

import zlib
from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import wire
from broker.core.limits import JSON
from broker.errors import Corrupt, InvalidInput

from . import strategies as make


@given(record=st.dictionaries(make.words, make.any_json, max_size=3), limit=st.sampled_from([0, 16, 1024]))
def test_what_is_encoded_is_decoded(record: dict[str, JSON], limit: int) -> None:
    assert wire.decode(wire.encode(record, compress_over=limit)) == record


def test_small_bodies_are_plain_and_large_ones_compressed() -> None:
    small, large = {"a": 1}, {"a": "x" * 5000}
    assert wire.encode(small) == b"\x01\x00" + msgpack.packb(small)
    assert wire.encode(large)[:2] == b"\x01\x01"
    assert len(wire.encode(large)) < 100


def test_a_body_that_does_not_shrink_stays_plain() -> None:
    noise = bytes(range(256)) * 8
    record = {"a": zlib.compress(noise * 3)[:200] + noise[:7]}
    assert wire.encode(record, compress_over=10)[1] == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "only 0 bytes"),
        (b"\x01", "only 1 bytes"),
        (b"\x00\x00\x80", "wire version 0"),
        (b"\x02\x00\x80", "wire version 2"),
        (b"\x01\x02\x80", "sealed"),
        (b"\x01\x03\x80", "sealed"),
        (b"\x01\x04\x80", "codec byte 4"),
        (b"\x01\x00", "no MessagePack map"),
        (b"\x01\x00\x90", "no MessagePack map"),
        (b"\x01\x00\x81\x01\x01", "no MessagePack map"),
        (b"\x01\x00\x81\xc4\x01a\x01", "no MessagePack map"),
        (b"\x01\x00\x81\xa1a", "no MessagePack map"),
        (b"\x01\x00\x80\x80", "no MessagePack map"),
        (b"\x01\x00\x81\xa1a\xa1\xff", "no MessagePack map"),
        (b"\x01\x00\x81\xa1a\xd4\x05\x00", "no MessagePack map"),
        (b"\x01\x00" + b"\x91" * 3000 + b"\x80", "no MessagePack map"),
        (b"\x01\x01not zlib", "broken"),
        (b"\x01\x01" + zlib.compress(b"\x80" * 100)[:-5], "broken"),
        (b"\x01\x01" + zlib.compress(b"\x80") + b"more", "broken"),
    ],
)
def test_broken_bytes_are_corrupt_and_say_why(data: bytes, reason: str) -> None:
    with pytest.raises(Corrupt, match=reason) as caught:
        wire.decode(data, key="some:key")
    assert caught.value.key == "some:key"


@given(data=st.binary(max_size=40))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    for head in (b"", b"\x01\x00", b"\x01\x01"):
        with suppress(Corrupt):
            assert isinstance(wire.decode(head + data), dict)


def test_unpacking_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "UNPACKED_MOST", 1000)
    with pytest.raises(Corrupt, match="more than 1000 bytes"):
        wire.decode(wire.encode({"a": "x" * 2000}))


def test_p12_a_record_over_its_limit_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="state takes 5006 bytes; allowed: at most 5000 bytes"):
        wire.encode({"a": "x" * 5000}, most=5000, field="state")


@pytest.mark.parametrize("value", [object(), {1}, 2**64, "\ud800", (1,)])
def test_p12_what_cannot_be_stored_is_refused_without_its_value(value: object) -> None:
    with pytest.raises(InvalidInput, match="record holds a value that cannot be stored") as caught:
        wire.encode({"a": value})
    assert caught.value.__context__ is None
