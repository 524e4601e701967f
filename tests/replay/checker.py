"""Judges a history of calls (`broker replay --history FILE`) without knowing how the broker works: rules over lines.

    python tests/replay/checker.py FILE

Each line is one call of one process. A call took effect at some moment between `t_call` and `t_return`; one whose
`error` is `unsure` or `cancelled` may have taken effect at any moment after `t_call`, or never.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

Call = dict[str, Any]

FIELDS = {
    "process", "op", "session_id", "run_id", "interrupt_id", "operation_id", "t_call", "t_return", "outcome", "winner",
    "fence", "error",
}  # fmt: skip
MAYBE = {"unsure", "cancelled"}
HELD = {"suspend", "finish", "fail", "release", "renew", "begin", "end", "handle", "cut"}
REFUSED = {"stale_lease", "nothing", None}
CHANGES = {"accepted", "leased", "done", "ready", "dead", "waiting"}
AFTER_THE_END = {"seen", "collect", "ring"}


def complaints(lines: Iterable[str]) -> list[str]:
    """What is wrong with a history, one line each; empty when it is good."""
    calls, found = [], []
    for number, line in enumerate(lines, 1):
        call = json.loads(line)
        found += [f"line {number}: {fault}" for fault in _malformed(call)]
        calls.append(call)
    if found:
        return found
    by_run, by_interrupt = _grouped(calls, "run_id"), _grouped(calls, "interrupt_id")
    for interrupt, some in by_interrupt.items():
        found += [f"interrupt {interrupt}: {fault}" for fault in _answers(some)]
    for run, some in by_run.items():
        for rule in (_fences, _late_writes, _after_the_end, _pauses):
            found += [f"run {run}: {fault}" for fault in rule(some)]
    return found


def _malformed(call: Call) -> Iterator[str]:
    if missing := FIELDS - call.keys():
        yield f"lacks {sorted(missing)}"
        return
    if call["t_return"] is not None and call["t_return"] < call["t_call"]:
        yield "returned before it was called"
    if call["t_return"] is None and call["error"] not in MAYBE:
        yield "never returned, and is not marked as unsure"
    if (call["outcome"] is None) == (call["error"] is None):
        yield "has not exactly one of outcome and error"


def _grouped(calls: Iterable[Call], name: str) -> dict[str, list[Call]]:
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        keys = call.get("interrupt_ids", [call[name]]) if name == "interrupt_id" else [call[name]]
        for key in keys:
            if key is not None:
                groups[key].append(call)
    return groups


def _happened(calls: Iterable[Call], *ops: str, outcomes: Iterable[str]) -> list[Call]:
    return [call for call in calls if call["op"] in ops and call["outcome"] in set(outcomes)]


def _before(one: Call, other: Call) -> bool:
    """Whether the first call had returned when the second was made."""
    return one["t_return"] is not None and one["t_return"] < other["t_call"]


def _answers(calls: list[Call]) -> Iterator[str]:
    """One answer is accepted; repeats are of one that was made; losers are told of one that won."""
    answers = [call for call in calls if call["op"] == "answer"]
    accepted = _happened(answers, "answer", outcomes=["accepted"])
    winners = {call["operation_id"] for call in accepted}
    if len(accepted) > 1:
        yield f"{len(accepted)} answers were accepted"
    possible = winners | {call["operation_id"] for call in answers if call["error"] in MAYBE}
    for call in _happened(answers, "answer", outcomes=["replayed"]):
        if call["operation_id"] not in possible:
            yield f"{call['operation_id']} was replayed and never happened"
    for call in _happened(answers, "answer", outcomes=["already_decided"]):
        if winners and call["winner"] not in winners:
            yield f"{call['operation_id']} was told that {call['winner']} had won"
    asked = [call for call in calls if call["op"] == "suspend"]
    for call in accepted:
        if asked and all(_before(call, one) for one in asked):
            yield f"{call['operation_id']} was accepted before it was asked"


def _leases(calls: Iterable[Call]) -> list[Call]:
    return _happened(calls, "lease", "adopt", outcomes=["leased"])


def _fences(calls: list[Call]) -> Iterator[str]:
    """Every lease has a higher fence than those that were given before it was asked for."""
    leases = sorted(_leases(calls), key=lambda call: int(call["fence"]))
    for one, following in pairwise(leases):
        if one["fence"] == following["fence"]:
            yield f"fence {one['fence']} was given twice"
        elif _before(following, one):
            yield f"fence {one['fence']} was given after fence {following['fence']}"


def _late_writes(calls: list[Call]) -> Iterator[str]:
    """Nobody writes under a fence when a newer lease had been given before, or under one nobody was given."""
    leases = _leases(calls)
    given = {lease["fence"] for lease in leases}
    unknown = any(call["op"] in ("lease", "adopt") and call["error"] in MAYBE for call in calls)
    for call in calls:
        if call["op"] not in HELD or call["fence"] is None or call["outcome"] in REFUSED:
            continue
        if call["outcome"] == "replayed":
            continue
        newer = [lease for lease in leases if lease["fence"] > call["fence"] and _before(lease, call)]
        if newer:
            yield f"{call['op']} under fence {call['fence']} went through after lease {newer[0]['fence']}"
        if call["fence"] not in given and not unknown:
            yield f"{call['op']} went through under fence {call['fence']}, which nobody was given"


def _after_the_end(calls: list[Call]) -> Iterator[str]:
    """After a run's end nothing changes it any more; it ends once."""
    ends = _happened(calls, "finish", outcomes=["finished"]) + _happened(
        calls, "withdraw", outcomes=["accepted"]
    )
    if len({call["operation_id"] for call in ends}) > 1:
        yield "it ended more than once"
    for end in ends[:1]:
        for call in calls:
            if call["op"] in AFTER_THE_END or call["outcome"] in REFUSED or not _before(end, call):
                continue
            if call["outcome"] in CHANGES and call["operation_id"] != end["operation_id"]:
                yield f"{call['op']} went through after its end"


def _pauses(calls: list[Call]) -> Iterator[str]:
    """One suspension is accepted once; repeats are replays."""
    seen: set[str] = set()
    for call in _happened(calls, "suspend", outcomes=["accepted"]):
        if call["operation_id"] in seen:
            yield f"{call['operation_id']} was accepted twice"
        seen.add(call["operation_id"])


if __name__ == "__main__":
    found = complaints(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    sys.stdout.write("\n".join(found or ["history: nothing wrong"]) + "\n")
    sys.exit(bool(found))
