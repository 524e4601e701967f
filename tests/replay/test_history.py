"""The history of a replay, judged by a checker that knows nothing of the broker: a good one, and broken ones."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.replay.ledger import FIELDS, Recorder, merge
from broker.telemetry import CATALOGUE, Observation

from .checker import complaints

RUNS = Path(__file__).with_name("data") / "clocks.jsonl"
COMMAND = [sys.executable, "-c", "import sys; from broker.cli import main; sys.exit(main())", "replay"]

Call = dict[str, Any]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Call, list[str], list[Call]]:
    """What a replay on the command line says, the effects it left, and its history."""
    folder = tmp_path_factory.mktemp("replay")
    history, effects = folder / "history", folder / "effects"
    effects.write_text("from another replay\n")
    options = [
        "--workers",
        "2",
        "--approvers",
        "1",
        "--json",
        "--history",
        str(history),
        "--effects",
        str(effects),
    ]
    done = subprocess.run([*COMMAND, str(RUNS), *options], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    calls = [json.loads(line) for line in history.read_text().splitlines()]
    return json.loads(done.stdout), effects.read_text().splitlines(), calls


@pytest.fixture
def history(replayed: tuple[Call, list[str], list[Call]]) -> list[Call]:
    """A good history, to be broken."""
    return [dict(call) for call in replayed[2]]


def judged(calls: list[Call]) -> list[str]:
    return complaints(json.dumps(call) for call in calls)


def happened(calls: list[Call], op: str, outcome: str) -> list[Call]:
    return [call for call in calls if (call["op"], call["outcome"]) == (op, outcome)]


def test_the_command_says_one_object(replayed: tuple[Call, list[str], list[Call]]) -> None:
    report, effects, _ = replayed
    assert list(report) == [
        "runs", "calls", "suspensions", "answered", "resumed", "resumed_elsewhere", "reruns", "lost", "mismatched",
        "doubled_answers", "effects", "wall_s", "lifecycles_per_s", "reruns_unexplained", "missing", "killed",
        "server_restarts", "taken_over", "taken_over_early", "lease_s", "pace_s", "merge_turns", "seed",
    ]  # fmt: skip
    assert len(effects) == len(set(effects)) == report["effects"] == 18


def test_a_file_that_cannot_be_read_is_a_fault_in_json() -> None:
    done = subprocess.run([*COMMAND, "missing.jsonl", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert json.loads(done.stderr)["code"] == "invalid"


def test_a_good_history_is_good(history: list[Call]) -> None:
    assert judged(history) == []


def test_every_call_of_every_process_is_in_it(history: list[Call]) -> None:
    assert {call["process"] for call in history} == {"replay", "worker-1", "worker-2", "approver-1"}
    assert {call["op"] for call in history} <= CATALOGUE.keys()
    assert {tuple(call)[: len(FIELDS)] for call in history} == {FIELDS}
    counts = Counter((call["op"], call["outcome"]) for call in history)
    assert counts["start", "accepted"] == counts["finish", "finished"] == 8
    assert counts["suspend", "accepted"] == 10
    assert counts["answer", "accepted"] == 13
    assert counts["lease", "leased"] == 18


def test_calls_are_in_the_order_they_were_made(history: list[Call]) -> None:
    assert history == sorted(history, key=lambda call: int(call["t_call"]))
    assert all(0 < call["t_call"] <= call["t_return"] for call in history)


def test_a_pause_with_several_questions_names_them_all(history: list[Call]) -> None:
    several = [call for call in happened(history, "suspend", "accepted") if call["interrupt_id"] is None]
    assert len(several) == 3
    answered = {call["interrupt_id"] for call in happened(history, "answer", "accepted")}
    assert all(
        len(call["interrupt_ids"]) == 2 and answered.issuperset(call["interrupt_ids"]) for call in several
    )


def test_nothing_of_what_was_said_is_in_it(history: list[Call]) -> None:
    text = json.dumps(history, ensure_ascii=False)
    assert [word for word in ("T-12", "Großmutter", "refunded", "rust", "nonce") if word in text] == []


# Broken histories --------------------------------------------------------------------------------------------------


def later(call: Call, **changes: Any) -> Call:
    """The same call again, made by another process after the first had returned."""
    at = call["t_return"] + 1
    return {**call, "process": "worker-9", "t_call": at, "t_return": at + 1, **changes}


def another_answer(calls: list[Call]) -> None:
    calls.append(later(happened(calls, "answer", "accepted")[0], operation_id="ans-other"))


def a_replay_of_nothing(calls: list[Call]) -> None:
    first = happened(calls, "answer", "accepted")[0]
    calls.append(later(first, operation_id="ans-other", outcome="replayed"))


def a_wrong_winner(calls: list[Call]) -> None:
    first = happened(calls, "answer", "accepted")[0]
    calls.append(later(first, operation_id="ans-other", outcome="already_decided", winner="ans-third"))


def an_answer_before_its_question(calls: list[Call]) -> None:
    happened(calls, "answer", "accepted")[0].update(t_call=1, t_return=2)


def a_fence_twice(calls: list[Call]) -> None:
    lease = happened(calls, "lease", "leased")[0]
    calls.append(later(lease))


def a_fence_that_shrinks(calls: list[Call]) -> None:
    first = happened(calls, "lease", "leased")[0]
    calls.append(later(first, fence=first["fence"] + 10))
    calls.append(later(calls[-1], fence=first["fence"] + 9))


def a_finish_under_an_older_lease(calls: list[Call]) -> None:
    finish = happened(calls, "finish", "finished")[0]
    lease = next(
        c
        for c in happened(calls, "lease", "leased")
        if c["fence"] == finish["fence"] and c["run_id"] == finish["run_id"]
    )
    calls.append(later(lease, fence=lease["fence"] + 1, t_return=finish["t_call"] - 1))
    calls[-1]["t_call"] = calls[-1]["t_return"] - 1


def a_write_under_a_fence_of_nobody(calls: list[Call]) -> None:
    happened(calls, "suspend", "accepted")[0]["fence"] = 77


def a_result_under_an_older_lease(calls: list[Call]) -> None:
    end = next(call for call in calls if call["op"] == "end")
    lease = next(
        c
        for c in happened(calls, "lease", "leased")
        if c["fence"] == end["fence"] and c["run_id"] == end["run_id"]
    )
    calls.append(later(lease, fence=lease["fence"] + 1, t_return=end["t_call"] - 1))
    calls[-1]["t_call"] = calls[-1]["t_return"] - 1


def a_lease_after_the_end(calls: list[Call]) -> None:
    finish = happened(calls, "finish", "finished")[0]
    calls.append(
        later(finish, op="lease", outcome="leased", operation_id="lease-9", fence=finish["fence"] + 1)
    )


def a_second_end(calls: list[Call]) -> None:
    finish = happened(calls, "finish", "finished")[0]
    calls.append(later(finish, operation_id="finish-other"))


def a_pause_accepted_twice(calls: list[Call]) -> None:
    pause = happened(calls, "suspend", "accepted")[0]
    calls.append({**pause, "process": "worker-9"})


def a_missing_field(calls: list[Call]) -> None:
    del calls[5]["fence"]


def a_return_before_the_call(calls: list[Call]) -> None:
    calls[5]["t_return"] = calls[5]["t_call"] - 1


def a_call_without_an_end(calls: list[Call]) -> None:
    calls[5].update(t_return=None, outcome=None)


def outcome_and_error(calls: list[Call]) -> None:
    calls[5]["error"] = "corrupt"


BROKEN: dict[str, Callable[[list[Call]], None]] = {
    "2 answers were accepted": another_answer,
    "was replayed and never happened": a_replay_of_nothing,
    "was told that ans-third had won": a_wrong_winner,
    "was accepted before it was asked": an_answer_before_its_question,
    "was given twice": a_fence_twice,
    "was given after fence": a_fence_that_shrinks,
    "finish under fence": a_finish_under_an_older_lease,
    "end under fence": a_result_under_an_older_lease,
    "under fence 77, which nobody was given": a_write_under_a_fence_of_nobody,
    "lease went through after its end": a_lease_after_the_end,
    "it ended more than once": a_second_end,
    "was accepted twice": a_pause_accepted_twice,
    "lacks ['fence']": a_missing_field,
    "returned before it was called": a_return_before_the_call,
    "never returned": a_call_without_an_end,
    "has not exactly one of outcome and error": outcome_and_error,
}


@pytest.mark.parametrize(("fault", "damage"), BROKEN.items(), ids=[one.__name__ for one in BROKEN.values()])
def test_a_broken_history_is_noticed(
    history: list[Call], fault: str, damage: Callable[[list[Call]], None]
) -> None:
    damage(history)
    assert [line for line in judged(history) if fault in line] != []


def test_repeats_and_losers_are_no_fault(history: list[Call]) -> None:
    first = happened(history, "answer", "accepted")[0]
    history.append(later(first, outcome="replayed"))
    lost = {"outcome": "already_decided", "winner": first["operation_id"], "operation_id": "ans-other"}
    history.append(later(first, **lost))
    history.append(later(happened(history, "finish", "finished")[0], op="renew", outcome="stale_lease"))
    assert judged(history) == []


def test_a_call_that_never_returned_may_have_happened(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "calls")
    sent = Observation(1, "answer", "s", "run_1", ("int_1",), "ans-1", t_call=5)
    recorder.sent([sent])
    assert merge([("worker-1", tmp_path / "calls")], tmp_path / "history") == 1
    (line,) = (tmp_path / "history").read_text().splitlines()
    assert json.loads(line) == {
        "process": "worker-1", "op": "answer", "session_id": "s", "run_id": "run_1", "interrupt_id": "int_1",
        "operation_id": "ans-1", "t_call": 5, "t_return": None, "outcome": None, "winner": None, "fence": None,
        "error": "unsure",
    }  # fmt: skip
    assert complaints([line]) == []
