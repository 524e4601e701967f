"""Reading recorded runs: which result belongs to which call, and files that are refused with the line named."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker import InvalidInput
from broker.replay.transcripts import Rules, Transcript, read, read_again, read_rules

DATA = Path(__file__).with_name("data")
RUNS = DATA / "clocks.jsonl"


def keys(transcript: Transcript) -> list[tuple[str, str, Any]]:
    return [(call.key, call.tool, call.result["content"]) for call in transcript.calls.values()]


def test_results_are_found_by_id_in_whatever_order_they_came() -> None:
    assert keys(read(RUNS)["clocks-2"]) == [
        ("2.3", "find_ticket", '{"ticket": "T-41", "price": 9}'),
        ("2.2", "wind_clock", "wound, it goes again"),
        ("2.0", "find_ticket", '{"ticket": "T-40", "price": 9}'),
        ("2.1", "refund_ticket", "refunded"),
        ("7.0", "refund_ticket", "refunded"),
    ]


def test_without_ids_results_are_found_by_name_and_order() -> None:
    assert keys(read(RUNS)["clocks-3"]) == [
        ("2.2", "find_ticket", "no such ticket"),
        ("2.0", "refund_ticket", "refunded T-1"),
        ("2.1", "refund_ticket", "refunded T-2"),
    ]


def test_a_repeated_id_makes_two_calls() -> None:
    assert [call.key for call in read(RUNS)["clocks-4"].calls.values()] == ["2.0", "4.0"]


def test_a_call_without_a_result_is_no_call_that_ran() -> None:
    assert [call.key for call in read(RUNS)["clocks-7"].calls.values()] == ["2.0"]


def test_arguments_that_are_no_json_stay_text() -> None:
    assert read(RUNS)["clocks-5"].calls["4.0"].arguments == "nicht JSON {"


@pytest.mark.parametrize(
    "text", ["[NaN]", "[-Infinity]", "[1e999]", "36893488147419103232", "[" * 100_000, '"\\ud800"']
)
def test_arguments_that_the_broker_would_refuse_stay_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.jsonl"
    messages = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "t", "arguments": text}}]},
        {"role": "tool", "content": "r"},
    ]
    path.write_text(json.dumps({"run_id": "r", "messages": messages}))
    assert read(path)["r"].calls["0.0"].arguments == text


def test_a_child_reads_what_its_parent_has_checked() -> None:
    assert read_again(RUNS) == read(RUNS)


def test_rules_lie_beside_the_runs() -> None:
    assert read_rules(RUNS) == Rules(frozenset({"refund_ticket"}), frozenset({"wind_clock", "inspect_tower"}))


def test_without_a_file_beside_nothing_pauses(tmp_path: Path) -> None:
    assert read_rules(tmp_path / "runs.jsonl") == Rules()


@pytest.mark.parametrize(
    "text", ["confirm = 1", "long = [1]", "confirm = [", "confirm = ['a']\nlong = ['b', 'a']"]
)
def test_rules_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs.toml").write_text(text)
    with pytest.raises(InvalidInput):
        read_rules(tmp_path / "runs.jsonl")


CALL = {"function": {"name": "t"}}

BAD_LINES: dict[str, Any] = {
    "no object": [],
    "no run id": {"messages": [{"role": "user"}]},
    "a run id with a brace": {"run_id": "a{b}", "messages": [{"role": "user"}]},
    "no messages": {"run_id": "r"},
    "empty messages": {"run_id": "r", "messages": []},
    "a message without a role": {"run_id": "r", "messages": [{"content": "x"}]},
    "half a surrogate pair": {"run_id": "r", "messages": [{"role": "user", "content": "\ud800"}]},
    "not a number": {"run_id": "r", "messages": [{"role": "user", "content": float("nan")}]},
    "calls that are no list": {"run_id": "r", "messages": [{"role": "assistant", "tool_calls": CALL}]},
    "a call of nothing": {"run_id": "r", "messages": [{"role": "assistant", "tool_calls": [{}]}]},
    "a call without a name": {
        "run_id": "r",
        "messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}],
    },
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_refused_by_its_number(tmp_path: Path, line: object) -> None:
    path = tmp_path / "runs.jsonl"
    good = {"run_id": "first", "messages": [{"role": "user", "content": "hello"}]}
    path.write_text(f"{json.dumps(good)}\n\n{json.dumps(line)}\n")
    with pytest.raises(InvalidInput, match=r"runs\.jsonl:3"):
        read(path)


def test_a_run_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run_id": "r", "messages": [{"role": "user"}]}\n' * 2)
    with pytest.raises(InvalidInput, match=r"runs\.jsonl:2 run_id was there before"):
        read(path)


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\xff\xfe", b"{"], ids=["empty", "blank", "no text", "no JSON"]
)
def test_a_file_that_holds_no_runs_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read(tmp_path / "runs.jsonl")
