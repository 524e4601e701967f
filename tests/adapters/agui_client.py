"""A client of AG-UI, and the processes that serve the agent to it."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
from ag_ui.core import Event as TheirEvent
from pydantic import TypeAdapter

from broker.interop.agui import StreamValidator
from broker.testing import wait_until

from .world import PATIENCE

THEIRS: TypeAdapter[Any] = TypeAdapter(TheirEvent)
JSONS = list[dict[str, Any]]


PRELOADED = ("uvicorn", "starlette.applications", "broker.adapters.agui", "tests.adapters.child", __name__)
"""What takes long to import; the processes are forks of one that has done it."""


def serve(argv: list[str], log: str) -> None:
    """What a process of the site does: what `python -m tests.adapters.site` does, with its output in a file."""
    with Path(log).open("a") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.argv = argv
    asyncio.run(import_module("tests.adapters.site").main())


class Site:
    """A process that serves the agent."""

    def __init__(self, url: str, namespace: str, options: dict[str, Any]) -> None:
        log = Path(options["folder"]) / f"site-{os.urandom(4).hex()}"
        log.touch()
        context = get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        argv = ["site", url, namespace, json.dumps(options)]
        self.process = context.Process(target=serve, args=(argv, str(log)), daemon=True)
        self.process.start()
        self.pid = self.process.pid or 0
        wait_until(
            lambda: "port" in log.read_text() or not self.process.is_alive(), PATIENCE, what="it serves"
        )
        assert self.process.is_alive(), log.read_text()
        said = json.loads(log.read_text().splitlines()[-1])
        self.url = f"http://127.0.0.1:{said['port']}/agent"

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.join()

    def exit_code(self) -> int:
        """Its exit code, when it has ended by itself."""
        self.process.join()
        return self.process.exitcode or 0

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
