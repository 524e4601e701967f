"""Canonical JSON and the digests over it."""

import math
import struct

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core.digest import action_digest, canonical_json, changed_paths
from broker.core.limits import JSON

from . import strategies as make

SAFE = 2**53 - 1
interoperable = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | make.floats | make.words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(make.words, inner, max_size=3),
    max_leaves=6,
)


@given(value=interoperable)
@example(value={"\U0001f600": 1, "\ufb33": 2, "\u20ac": 3, "\r": 4, "1": 5, "\u0080": 6, "\u00f6": 7})
@example(value=["\u2028", "\x7f", "\x00\x1f", '"\\/'])
@example(value={"version": "1.5", "n": [1.5, 1e21, 1e-7]})
def test_canonical_json_is_that_of_rfc_8785(value: JSON) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(bits=st.integers(0, 2**64 - 1))
@example(bits=0x444B1AE4D6E2EF50)  # 1e21, the first with an exponent
@example(bits=0x444B1AE4D6E2EF4F)
@example(bits=0x3EB0C6F7A0B5ED8D)  # 1e-6, the last without
@example(bits=0x3E7AD7F29ABCAF48)  # 1e-7
@example(bits=0x0000000000000001)
@example(bits=0x8000000000000000)
@example(bits=0x43143FF3C1CB0959)
def test_every_double_is_printed_as_rfc_8785_has_it(bits: int) -> None:
    (number,) = struct.unpack(">d", bits.to_bytes(8))
    if math.isfinite(number):
        assert canonical_json(number) == rfc8785.dumps(number)


def test_integers_beyond_two_to_the_53rd_keep_their_digits() -> None:
    assert canonical_json(2**64 - 1) == b"18446744073709551615"
    assert action_digest("t", 2**60) != action_digest("t", 2**60 + 1)


def test_a12_one_and_one_point_nought_agree_and_key_order_is_no_matter() -> None:
    one = action_digest("wire_transfer", {"amount": 40, "to": "acct_2"})
    assert one == action_digest("wire_transfer", {"to": "acct_2", "amount": 40.0})
    assert one.startswith("1:")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wire_transfer", {"amount": 400, "to": "acct_2"}),
        ("wire_transfer", {"amount": "40", "to": "acct_2"}),
        ("wire", {"amount": 40, "to": "acct_2"}),
        ("wire_transfer", None),
    ],
)
def test_a28_another_tool_or_other_arguments_are_another_action(tool: str, arguments: JSON) -> None:
    assert action_digest(tool, arguments) != action_digest("wire_transfer", {"amount": 40, "to": "acct_2"})


def test_nan_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_f17_the_paths_of_an_edit_are_recorded_without_values() -> None:
    before = {"to": "a", "n": 1, "lines": [{"sku": 1}, {"sku": 2}], "gone": None, "same": 1.0}
    after = {"to": "b", "n": 1, "lines": [{"sku": 1}, {"sku": 3}], "new": {"x": 1}, "same": 1}
    assert changed_paths(before, after) == (
        "arguments.gone",
        "arguments.lines[1].sku",
        "arguments.new",
        "arguments.to",
    )
    assert changed_paths([1], [1, 2]) == ("arguments",)


@given(value=make.any_json)
def test_a_value_does_not_differ_from_itself(value: JSON) -> None:
    assert changed_paths(value, value) == ()
