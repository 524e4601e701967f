"""Turns of the record joined to longer ones: nothing gets lost, nothing that was said comes out of order."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from broker.replay.merging import merge_turns
from broker.replay.transcripts import Transcript, read

RUNS = Path(__file__).with_name("data") / "clocks.jsonl"

Message = dict[str, Any]


def turn(*ids: str, content: Any = None, **more: Any) -> Message:
    calls = [{"id": one, "function": {"name": f"tool_{one}", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def result(of: str) -> Message:
    return {"role": "tool", "tool_call_id": of, "name": f"tool_{of}", "content": f"result of {of}"}


def run(*messages: Message) -> Transcript:
    return Transcript("r", "m", messages)


def sizes(transcript: Transcript) -> list[int]:
    return [len(calls) for calls in transcript.turns.values()]


FOUR = [one for of in "abcd" for one in (turn(of), result(of))]
USER: Message = {"role": "user", "content": "hello"}


def test_consecutive_turns_become_one_with_all_calls_and_their_results_after_it() -> None:
    merged = merge_turns(run(USER, *FOUR), 3)
    assert merged.messages == (
        USER, turn("a", "b", "c"), result("a"), result("b"), result("c"), turn("d"), result("d"),
    )  # fmt: skip
    assert [call.result["content"] for call in merged.calls.values()] == [
        f"result of {one}" for one in "abcd"
    ]


@pytest.mark.parametrize(("most", "expected"), [(1, [1, 1, 1, 1]), (2, [2, 2]), (4, [4]), (64, [4])])
def test_turns_hold_as_many_calls_as_may_be(most: int, expected: list[int]) -> None:
    assert sizes(merge_turns(run(*FOUR), most)) == expected


def test_what_somebody_says_in_between_keeps_turns_apart() -> None:
    assert sizes(merge_turns(run(*FOUR[:4], USER, *FOUR[4:]), 4)) == [2, 2]
    assert sizes(merge_turns(run(*FOUR[:4], {"role": "assistant", "content": "so"}, *FOUR[4:]), 4)) == [2, 2]


def test_turns_that_have_several_calls_are_not_divided() -> None:
    long = [turn("x", "y", "z"), result("z"), result("y"), result("x")]
    assert sizes(merge_turns(run(*FOUR[:2], *long, *FOUR[2:]), 2)) == [1, 3, 2, 1]
    assert sizes(merge_turns(run(*FOUR[:2], *long, *FOUR[2:]), 4)) == [4, 3]


def test_what_the_model_said_beside_its_calls_is_kept() -> None:
    first, second = turn("a", content="One.", name="kit"), turn("b", content="Two.")
    merged = merge_turns(run(first, result("a"), second, result("b"), *FOUR[4:6]), 3)
    assert merged.messages[0] == turn("a", "b", "c", content="One.\nTwo.", name="kit")


def test_a_turn_without_all_results_or_with_other_than_text_stays() -> None:
    lacking = [turn("x", "y"), result("x")]
    assert merge_turns(run(*lacking, *FOUR[:4]), 5).messages[:2] == tuple(lacking)
    parts = [turn("p", content=[{"type": "text", "text": "so"}]), result("p")]
    assert sizes(merge_turns(run(*FOUR[:2], *parts, *FOUR[2:6]), 5)) == [1, 1, 2]


def test_calls_without_ids_keep_their_results() -> None:
    bare = deepcopy(FOUR)
    for message in bare:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]
    merged = merge_turns(run(*bare), 4)
    assert [call.result["content"] for call in merged.calls.values()] == [
        f"result of {one}" for one in "abcd"
    ]


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_recorded_runs_keep_every_call_and_every_other_message(most: int) -> None:
    for transcript in read(RUNS).values():
        merged = merge_turns(transcript, most)
        assert [call.result for call in merged.calls.values()] == [
            c.result for c in transcript.calls.values()
        ]
        assert merge_turns(merged, most) == merged
        others = [[one for one in x.messages if "tool_calls" not in one] for x in (transcript, merged)]
        assert others[0] == others[1]
