"""Between the record and the journal: calls and results of unusual shape come through as they were."""

from typing import Any

import pytest

from broker.core.entries import Result
from broker.core.toolcalls import ToolCall
from broker.replay.player import answered, asked, given
from broker.replay.transcripts import Call

CONTENTS: list[Any] = [
    "",
    "text",
    "null",
    "[1]",
    None,
    1,
    1.0,
    True,
    [],
    {"a": [None]},
    [{"type": "text", "text": "ü"}],
]


def through(call: Call, result: Result) -> Any:
    """The message about a call, by way of the journal's own."""
    return answered(call, ToolCall.parse(asked(call)).message(result)["content"])


@pytest.mark.parametrize("content", CONTENTS, ids=repr)
def test_content_of_any_kind_comes_back(content: Any) -> None:
    recorded = {"role": "tool", "content": content, "name": "t", "extra": 1}
    message = through(Call("2.0", "t", {}, recorded), Result(value=content))
    assert (message, type(message["content"])) == (recorded, type(content))


def test_a_result_without_content_has_none_afterwards() -> None:
    recorded = {"role": "tool", "tool_call_id": None}
    assert through(Call("2.0", "t", {}, recorded), Result(value=None)) == recorded


def test_a_failure_is_not_taken_for_the_recorded_content() -> None:
    call = Call("2.0", "t", {}, {"role": "tool", "content": None})
    failed = Result.from_json({"failure": {"kind": "rejected", "text": "no"}})
    assert through(call, failed)["content"] == "Error (rejected): no"


@pytest.mark.parametrize("arguments", [None, "no JSON {", 7, [1]], ids=repr)
def test_arguments_that_are_no_object_are_put_in_one(arguments: Any) -> None:
    assert given(Call("2.0", "t", arguments, {})) == {"arguments": arguments}


def test_a_call_is_known_by_its_place() -> None:
    parsed = ToolCall.parse(asked(Call("2.0", "t", {"a": 1}, {})))
    assert (parsed.id, parsed.name, parsed.arguments, parsed.fault) == ("2.0", "t", {"a": 1}, None)
