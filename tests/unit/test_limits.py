"""P12: bad input is refused before anything happens, and the error names the field, the fault and what is allowed."""

import enum

import pytest
from hypothesis import given

from broker.core.limits import (
    INT_MAX,
    INT_MIN,
    JSON,
    Limits,
    check_id,
    check_json,
    check_name,
    check_namespace,
)
from broker.core.models import Interrupt
from broker.errors import InvalidInput

from . import strategies as make


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    ONE = 1


def nested(depth: int) -> JSON:
    value: JSON = 1
    for _ in range(depth):
        value = [value]
    return value


@given(value=make.any_json)
def test_json_passes_as_an_equal_copy(value: JSON) -> None:
    copy = check_json("payload", value)
    assert copy == value
    assert type(copy) is type(value)


def test_later_changes_to_the_original_do_not_reach_the_copy() -> None:
    original = {"a": [1, {"b": 2}]}
    interrupt = Interrupt(payload=original)
    original["a"][1]["b"] = 3  # type: ignore[index]
    assert interrupt.payload == {"a": [1, {"b": 2}]}


def test_tuples_and_subclasses_become_plain() -> None:
    copy = check_json("payload", {"a": (1, Colour.RED, Size.ONE)})
    assert copy == {"a": [1, "red", 1]}
    assert [type(item) for item in copy["a"]] == [int, str, int]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (float("nan"), "payload"),
        ({"a": [1, 2, 3, float("inf")]}, "payload.a[3]"),
        ({"a": {"b": INT_MAX + 1}}, "payload.a.b"),
        ([INT_MIN - 1], "payload[0]"),
        ({"a": {7: 1}}, "payload.a.7"),
        ({"a": [b"bytes"]}, "payload.a[0]"),
        ({"a": {1, 2}}, "payload.a"),
        ({"a": "\ud800"}, "payload.a"),
        ({"\ud800": 1}, "payload.?"),
    ],
)
def test_p12_the_place_of_a_fault_is_named(value: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_json("payload", value)
    assert caught.value.field == field
    assert caught.value.problem
    assert caught.value.allowed
    assert caught.value.__context__ is None


def test_p12_depth_is_limited() -> None:
    check_json("payload", nested(64))
    for value in (nested(65), nested(5000)):
        with pytest.raises(InvalidInput, match="nested too deep"):
            check_json("payload", value)
    check_json("payload", nested(3), Limits(depth=3))


@pytest.mark.parametrize("value", ["a", "a:b/c", "tool#1", "é", "a b", "x" * 256, "int_7"])
def test_ids_may_hold_colons_and_slashes(value: str) -> None:
    assert check_id("session", value) == value


@pytest.mark.parametrize(
    "value",
    ["", "x" * 257, " a", "a\n", "a\u3000", "a\x00b", "a\x7f", "{a}", "a}", "\ud800", "a\u0085b", None, 7],
)
def test_p12_ids_that_would_break_a_key_are_refused(value: JSON) -> None:
    with pytest.raises(InvalidInput, match=r"^session "):
        check_id("session", value)


@pytest.mark.parametrize("value", ["a", "agents", "A-1_x.y", "0" * 64])
def test_names(value: str) -> None:
    assert check_name("queue", value) == value


@pytest.mark.parametrize("value", ["", "-a", ".a", "a b", "a:b", "a/b", "é", "0" * 65, "a\n", None])
def test_p12_names_that_would_break_a_key_are_refused(value: JSON) -> None:
    with pytest.raises(InvalidInput, match=r"^queue "):
        check_name("queue", value)


@pytest.mark.parametrize("value", ["a", "airline", "a-1_b"])
def test_namespaces(value: str) -> None:
    assert check_namespace(value) == value


@pytest.mark.parametrize("value", ["", "A", "a:b", "a.b", "a*", "_a", "a" * 65])
def test_p13_a_namespace_that_another_ones_access_pattern_would_open_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"^namespace "):
        check_namespace(value)
