"""A client of AG-UI, and the processes that serve the agent to it."""

import json
from collections.abc import Callable
from typing import Any

import httpx
from ag_ui.core import Event as TheirEvent
from pydantic import TypeAdapter

from broker.interop.agui import StreamValidator
from tests.worker.fleet import Agents

THEIRS: TypeAdapter[Any] = TypeAdapter(TheirEvent)
JSONS = list[dict[str, Any]]


class Site:
    """A process that serves the agent."""

    def __init__(self, process: Agents) -> None:
        self.process = process
        said = json.loads(process.says("port"))
        self.pid, self.url = said["pid"], f"http://127.0.0.1:{said['port']}/agent"

    def post(self, run_id: str, *, by: str = "ada", **given: Any) -> JSONS:
        """The events of a run, each of which the protocol's own reader takes, in an order that conforms."""
        body = {"threadId": "thread-1", "runId": run_id, "messages": []} | given
        came = httpx.post(self.url, json=body, headers={"authorization": f"Bearer {by}"}, timeout=60)
        assert came.headers["content-type"].startswith("text/event-stream"), came.text
        lines = [line for line in came.text.splitlines() if line.startswith("data: ")]
        events: JSONS = [json.loads(line.removeprefix("data: ")) for line in lines]
        judge = StreamValidator()
        for one in events:
            THEIRS.validate_python(one)
            judge.feed(one)
        judge.close()
        assert judge.conforms, judge.violations
        return events


Sites = Callable[..., Site]
"""Starts one; the options are those of `tests.adapters.site`, and `url` for another server than the test's."""


def pays(*amounts: int) -> dict[str, Any]:
    return {"state": {"amounts": list(amounts)}}


def asked(events: JSONS) -> JSONS:
    """The interrupts with which a run has ended."""
    outcome = events[-1]["outcome"]
    assert (events[-1]["type"], outcome["type"]) == ("RUN_FINISHED", "interrupt"), events
    found: JSONS = outcome["interrupts"]
    return found


def yes(one: dict[str, Any], **payload: Any) -> dict[str, Any]:
    return {"interruptId": one["id"], "status": "resolved", "payload": {"approved": True} | payload}


def no(one: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "interruptId": one["id"],
        "status": "resolved",
        "payload": {"approved": False, "reason": reason},
    }


def cancelled(one: dict[str, Any]) -> dict[str, Any]:
    return {"interruptId": one["id"], "status": "cancelled"}


def refusal(events: JSONS) -> str:
    """The code with which an input was refused."""
    assert events[-1]["type"] == "RUN_ERROR", events
    code: str = events[-1]["code"]
    return code
