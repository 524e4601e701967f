from datetime import timedelta
from typing import Any

import pytest

from broker import Doubt, InvalidInput, Pending, Tool, current_call, gated, long_running, tool
from broker.core.toolcalls import ToolCall
from broker.core.tools import registry
from broker.errors import NotACall


def plain(a: int, *, b: int = 2) -> int:
    return a + b


@gated(reviewers=("ann", "bob"), expires_in=timedelta(minutes=1))
@long_running(expires_in=timedelta(hours=1), on_doubt=Doubt.ASK)
async def both(a: int) -> Pending:
    return Pending(handle=a)


def test_decorators_add_up() -> None:
    known = Tool.of(both)
    assert (known.name, known.gated, known.long_running, known.on_doubt) == ("both", True, True, Doubt.ASK)
    assert (known.expires_in, known.completes_in) == (timedelta(minutes=1), timedelta(hours=1))
    assert known.reviewers == ("ann", "bob")


def test_what_a_decorator_does_not_name_stays() -> None:
    """A time-out around a tool that asks in doubt must not let it run twice. Off: defaults set by `tool`."""

    @tool(timeout=timedelta(seconds=1))
    @gated(on_doubt=Doubt.ASK, verify=print)
    def pay() -> None: ...

    known = Tool.of(pay)
    assert (known.gated, known.on_doubt, known.verify) == (True, Doubt.ASK, print)
    assert known.timeout == timedelta(seconds=1)


def test_a_decorated_function_is_the_function() -> None:
    marked = tool(timeout=timedelta(seconds=1))(plain)
    assert marked is plain
    assert marked(1) == 3


def test_a_plain_function_is_a_tool() -> None:
    assert Tool.of(len).name == "len"
    assert not Tool.of(len).asks


@pytest.mark.parametrize("wrong", [3, "tool", None])
def test_what_cannot_be_called_is_no_tool(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        Tool.of(wrong)


def test_a_mapping_names_its_tools() -> None:
    assert registry({"sum": plain})["sum"].name == "sum"


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [({"a": 1}, True), ({"a": 1, "b": 3}, True), ({}, False), ({"a": 1, "c": 1}, False)],
)
def test_arguments_that_do_not_fit_are_known_before_the_call(arguments: dict[str, int], fits: bool) -> None:  # noqa: FBT001
    assert Tool.of(plain).fits(arguments) is fits


def test_outside_a_tool_there_is_no_call() -> None:
    with pytest.raises(NotACall):
        current_call()


class Function:
    name = "search"
    arguments = '{"text": "x"}'


class Asked:
    id = "c1"
    function = Function()


SHAPES: dict[str, Any] = {
    "chat completions": {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"text": "x"}'}},
    "objects": Asked(),
    "anthropic": {"type": "tool_use", "id": "c1", "name": "search", "input": {"text": "x"}},
    "langchain": {"type": "tool_call", "id": "c1", "name": "search", "args": {"text": "x"}},
    "messages": {"tool_call_id": "c1", "name": "search", "arguments": {"text": "x"}},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_common_shapes_of_a_call_are_read(shape: str) -> None:
    found = ToolCall.parse(SHAPES[shape])
    assert (found.id, found.entry, found.name, found.arguments) == ("c1", "c1", "search", {"text": "x"})
    assert found.fault is None


@pytest.mark.parametrize("empty", [None, "", "  ", {}])
def test_no_arguments_are_none(empty: Any) -> None:
    found = ToolCall.parse({"id": "c1", "name": "search", "arguments": empty})
    assert (found.arguments, found.fault) == ({}, None)


def test_deep_arguments_are_the_calls_fault() -> None:
    found = ToolCall.parse({"id": "c1", "name": "search", "arguments": "[" * 100_000})
    assert found.fault is not None
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    assert ToolCall.parse({"id": "c1", "name": "search", "arguments": deep}).fault is not None


def test_long_ids_have_entries_of_their_own() -> None:
    one, two = (ToolCall.of("x" * 2000 + end, "search", {}) for end in "ab")
    assert one.entry != two.entry
    assert len(str(one.entry)) < 240
