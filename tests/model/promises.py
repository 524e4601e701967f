"""The promises, held against what is seen and what callers were told. The model is not asked."""

from collections.abc import Iterator

from .answering import AnswerCall
from .request import Request
from .running import Held
from .seen import View
from .state import CLOSED, DECIDED, Told


class Kept:
    """What was acknowledged so far."""

    def __init__(self) -> None:
        self.decided: dict[str, str] = {}
        self.fences: dict[str, int] = {}
        self.parked: dict[str, str] = {}

    def broken(self, request: Request, told: Told, before: View, seen: View) -> Iterator[str]:
        """One sentence for each promise that does not hold after a request was answered."""
        yield from self._one_answer(before, seen)
        yield from self._one_holder(request, told, seen)
        yield from self._none_lost(request, told, seen)
        yield from _active_mark(seen)
        yield from _ready_when_complete(seen)
        yield from _causes_of_wake(seen)
        yield from _bells(seen)
        if seen.history < before.history:
            yield "P14: history was lost"
        if _states(seen).items() - _states(before).items() and seen.history == before.history:
            yield f"P14: {request} changed a state and left no history"

    def _one_answer(self, before: View, seen: View) -> Iterator[str]:
        """P4: who decided an interrupt stays who decided it, and its verdict stays with it."""
        for name, fields in seen.facts.items():
            kind, _, one = name.partition(" ")
            if kind == "interrupt" and fields["state"] != "open":
                decider = self.decided.setdefault(one, f"{fields['state']} {fields['op']}")
                if decider != f"{fields['state']} {fields['op']}":
                    yield f"P4: {one} was {decider}, now it is {fields['state']} {fields['op']}"
                if fields["state"] in DECIDED and fields["verdict"] not in seen.facts["verdicts"]:
                    yield f"P4: {one} is decided and has no verdict"
        for one in [one for one in self.decided if not seen.of("interrupt", one)]:
            if seen.facts["retention"] == before.facts["retention"]:
                yield f"P4: {one} was decided and is gone"
            del self.decided[one]

    def _one_holder(self, request: Request, told: Told, seen: View) -> Iterator[str]:
        """P6: fences only grow, and only the newest lease writes."""
        if isinstance(request, Held) and told[0] in ("ok", "accepted"):
            token = request.lease.token
            if token.fence < self.fences.get(token.run, 0):
                yield f"P6: lease {token.fence} wrote after {self.fences[token.run]} was given"
        for name, fields in seen.facts.items():
            kind, _, run = name.partition(" ")
            if kind == "run":
                if int(fields["fence"]) < self.fences.get(run, 0):
                    yield f"P6: the fence of {run} went back"
                self.fences[run] = int(fields["fence"])
        for run in [run for run in self.fences if not seen.of("run", run)]:
            del self.fences[run]

    def _none_lost(self, request: Request, told: Told, seen: View) -> Iterator[str]:
        """P5: an answer that came early is kept until it is matched, or reported."""
        if isinstance(request, AnswerCall) and told[0] == "parked":
            self.parked[request.name] = request.op
        early = seen.facts.get("early", [])
        deciders = {fields["op"] for _, fields in _records(seen, "interrupt")}
        reported = any(bell["event"] == "unmatched" for bell in seen.rung["dispositions"].values())
        for name in [name for name in self.parked if name not in early]:
            op = self.parked.pop(name)
            if op not in deciders and not reported:
                yield f"P5: the answer {op} was kept for {name}, and is nowhere"


def _records(seen: View, kind: str) -> Iterator[tuple[str, dict[str, str]]]:
    for name, fields in seen.facts.items():
        if name.startswith(f"{kind} "):
            yield name.partition(" ")[2], fields


def _states(seen: View) -> dict[str, str]:
    return {name: fields["state"] for kind in ("run", "interrupt") for name, fields in _records(seen, kind)}


def _active_mark(seen: View) -> Iterator[str]:
    """P7: the mark names the runs that have a suspension and are not closed, and no others."""
    paused = {
        run: f["seq"] for run, f in _records(seen, "run") if f["seq"] != "0" and f["state"] not in CLOSED
    }
    if seen.facts.get("active", {}) != paused:
        yield f"P7: the active mark is {seen.facts.get('active', {})}, interrupted are {paused}"


def _ready_when_complete(seen: View) -> Iterator[str]:
    """P5: a run waits exactly while something is open that its mode waits for."""
    for run, f in _records(seen, "run"):
        left = [one for one in f["ids"].split() if seen.of("interrupt", one).get("state") == "open"]
        if f["left"] != str(len(left)):
            yield f"P5: {run} counts {f['left']} open interrupts, there are {len(left)}"
        if f["state"] == "waiting" and not left:
            yield f"P5: {run} waits for nothing"
        if f["state"] in ("ready", "leased") and left and f["mode"] != "each":
            yield f"P5: {run} is {f['state']} before its pause is complete"


def _causes_of_wake(seen: View) -> Iterator[str]:
    """Whatever can go on by itself is on the list of those who make it go on."""
    pool = next(name for name in seen.facts if name.startswith("ready "))
    for run, f in _records(seen, "run"):
        timed = f"r {run}" in seen.facts["timers"]
        if (f["state"] == "ready" and not f["ready_at"]) != (run in seen.facts[pool]):
            yield f"P5: {run} is {f['state']}, and the list of ready runs does not say so"
        if timed != bool(f["state"] == "leased" or f["ready_at"]):
            yield f"P9: {run} is {f['state']}, and the timers do not say so"
        if (f["state"] == "dead") != (run in seen.facts["dead"]):
            yield f"P11: {run} is {f['state']}, and the dead letters do not say so"


def _bells(seen: View) -> Iterator[str]:
    """P9: what a doorbell says is true when it rings."""
    for bell in seen.rung["ready"].values():
        state = seen.of("run", bell["run"]).get("state")
        if bell["run"] and state not in ("ready", "withdrawn"):
            yield f"P9: the ready bell rang for {bell['run']}, which is {state}"
    for bell in seen.rung["interrupts"].values():
        if seen.of("interrupt", bell["interrupt"]).get("state") != "open":
            yield f"P9: the interrupts bell rang for {bell['interrupt']}, which is not open"
