"""What it takes to build, write, read and digest the values of one lifecycle, beside plain JSON of the same state."""

import json
import timeit
from collections.abc import Callable
from typing import Any, Final

from benchmarks import workload
from benchmarks.stats import rounded
from benchmarks.variants.broker_calls import question, state
from broker import Approve, Interrupt, InterruptState, Principal, Verdict, parse_answer

REPEATS: Final = 5


def measures() -> dict[str, Callable[[], Any]]:
    """Name -> what is timed."""
    number = 7
    frozen, asked, plain = state(number), question(number), workload.snapshot(number)
    stored, written, text = frozen.to_bytes(), asked.to_bytes(), workload.dumps(plain)
    verdict = Verdict(
        interrupt_id="int_0000" + "0" * 32,
        answer=Approve(),
        by=Principal.local(workload.BY),
        op="ans-0",
        seen=asked.content_digest,
    )
    action = asked.action
    assert action is not None  # noqa: S101 - an approval has one
    said = Approve().to_json()
    return {
        "state: build": lambda: state(number),
        "state: write": frozen.to_bytes,
        "state: read": lambda: InterruptState.from_bytes(stored),
        "state: json.dumps": lambda: workload.dumps(plain),
        "state: json.loads": lambda: json.loads(text),
        "interrupt: build": lambda: question(number),
        "interrupt: write": asked.to_bytes,
        "interrupt: read": lambda: Interrupt.from_bytes(written),
        "interrupt: digest": lambda: asked.content_digest,
        "action: digest": lambda: action.digest,
        "verdict: write": verdict.to_bytes,
        "answer: parse": lambda: parse_answer(said),
    }


def sizes() -> dict[str, int]:
    """Bytes of one state: as JSON by hand, and as the broker stores it."""
    return {"json": len(workload.dumps(workload.snapshot(7))), "stored": len(state(7).to_bytes())}


def run(seconds: float) -> dict[str, float]:
    """Microseconds per call, the best of a few repeats of so long each: what the processor needs undisturbed."""
    found = {}
    for name, call in measures().items():
        timer = timeit.Timer(call)
        once = max(min(timer.repeat(3, 1)), 1e-7)
        number = max(1, int(seconds / REPEATS / once))
        found[name] = rounded(min(timer.repeat(REPEATS, number)) / number * 1e6)
    return found
