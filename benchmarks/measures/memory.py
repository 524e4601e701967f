"""`bytes_open_4k`, `bytes_open_airline`: server memory of one open question, everything counted, beside its state.

Everything: run, question, frozen state, indexes, timers, marks, history, bells. Beside it stands the state as compact
JSON. It is what the server's `used_memory` grows by, so the allocator's rounding is in it, and what clients used while
they wrote is not: they are gone when it is read.
"""

import json
import tomllib
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from benchmarks import workload
from benchmarks.harness import server
from benchmarks.machine import server_info
from benchmarks.series import ratio, value
from benchmarks.variants.broker_calls import AGENT, NAMESPACE, question, session, state
from broker import Action, Broker, Interrupt, InterruptState, PendingToolCall, Principal, Suspension
from broker.testing import ServerProcess, wait_until

from .how import Found, How, summaries

AT_ONCE: Final = 200
Pause = tuple[Suspension, int]
"""What is stored, and how many bytes its state is as JSON."""


def of_4k(how: How) -> Found:
    """With the state of the lifecycles, 3,940 bytes of JSON."""
    return _measured(how, "bytes_open_4k", how.size(10_000, 100), _of_4k)


def of_runs(how: How) -> Found:
    """With the states of recorded runs, at each call that one of them would have been paused at."""
    name = "bytes_open_airline"
    if how.runs is None:
        return Found(skipped={name: "no recorded runs were given (--runs FILE)"})
    states = list(_recorded(how.runs))
    if not states:
        return Found(skipped={name: f"{how.runs.name} holds no tool call to pause at"})
    return _measured(how, name, how.size(max(2000, len(states)), 100), lambda n: _of_runs(states, n))


def _measured(how: How, name: str, count: int, pauses: Callable[[int], Iterator[Pause]]) -> Found:
    how.say(f"{name}: {how.rounds} x {count:,} open questions")
    found: list[dict[str, float]] = []
    for _ in range(how.rounds):
        with server() as one:
            found.append(_one(one, pauses(count)))
    measures = {
        name: ratio([one["bytes"] / one["JSON bytes"] for one in found], "the state as JSON"),
        f"{name}_bytes": value([one["bytes"] for one in found], "bytes a question"),
    }
    return Found(measures, details={name: summaries({"broker": found})})


def _one(one: ServerProcess, pauses: Iterator[Pause]) -> dict[str, float]:
    with Broker(one.tcp_url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        broker.fleet()  # the namespace and its scripts are there
    before = _used(one)
    count = size = 0
    with Broker(one.tcp_url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        while some := list(islice(pauses, AT_ONCE)):
            if wrong := [told for told in broker.batch.suspend([p for p, _ in some]) if not told.ok]:
                raise RuntimeError(f"{len(wrong)} were not paused, the first: {wrong[0]}")
            count, size = count + len(some), size + sum(bytes_ for _, bytes_ in some)
        entries = len(broker.history(some_session(count - 1)))
    used = _used(one) - before
    return {"bytes": used / count, "JSON bytes": size / count, "questions": count, "history entries": entries}


def _used(one: ServerProcess) -> int:
    """Memory of the server when it has no client and nothing to write."""
    wait_until(lambda: server_info(one, "clients")["connected_clients"] == "1", what="the clients are gone")
    memory = server_info(one, "memory")
    return int(memory["used_memory"]) - int(memory.get("mem_aof_buffer", 0))


def some_session(number: int) -> str:
    """The session of a question."""
    return session(number)


def _of_4k(count: int) -> Iterator[Pause]:
    for n in range(count):
        yield _pause(n, question(n), state(n)), len(workload.dumps(workload.snapshot(n)))


def _of_runs(states: list[dict[str, Any]], count: int) -> Iterator[Pause]:
    for n, one in enumerate(islice(cycle(states), count)):
        pending = one["pending"]
        call = PendingToolCall(
            tool_call_id=pending["id"], tool_name=pending["name"], arguments=pending["arguments"]
        )
        frozen = InterruptState(
            pending_tool_calls=(call,), context_snapshot=one["messages"], model=one["model"]
        )
        asked = Interrupt.approval(
            Action(tool=pending["name"], arguments=pending["arguments"]), pending["id"]
        )
        yield _pause(n, asked, frozen), len(workload.dumps(one).encode())


def _pause(number: int, asked: Interrupt, frozen: InterruptState) -> Suspension:
    return Suspension(agent=AGENT, session=some_session(number), interrupts=[asked], state=frozen, key="open")


def _recorded(path: Path) -> Iterator[dict[str, Any]]:
    """The state at each tool call that needs an approval: by the TOML file beside the runs, where there is one."""
    rules = path.with_suffix(".toml")
    gated = tomllib.loads(rules.read_text(encoding="utf-8")).get("confirm") if rules.exists() else None
    with path.open(encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            run = json.loads(line)
            for place, message in enumerate(run["messages"]):
                for number, call in enumerate(message.get("tool_calls") or ()):
                    function = call["function"]
                    if gated is not None and function["name"] not in gated:
                        continue
                    pending = {"id": f"{place}.{number}", "name": function["name"]}
                    pending["arguments"] = _arguments(function["arguments"])
                    messages = run["messages"][: place + 1]
                    yield {"model": run.get("model"), "messages": messages, "pending": pending}


def _arguments(text: Any) -> Any:
    found = json.loads(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {"value": found}
