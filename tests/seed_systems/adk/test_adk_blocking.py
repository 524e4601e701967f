"""The blocking twin: a plain handler and a plain host do the same."""

from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from broker import BlockingRun, Broker, Pending, Principal, RunState, long_running
from broker.interop import adk
from broker.testing import RunningServer

from .script import FIRST, completion, value


def play(run: BlockingRun[Any], sent: list[int]) -> list[Any]:
    """Pays, when it may, and renders a video."""

    def wire_transfer(amount: int) -> str:
        sent.append(amount)
        return f"sent {amount}"

    @long_running
    def render_video() -> Pending:
        return Pending(handle="j-9")

    agent = adk.BlockingCodeAct(run, [wire_transfer, render_video], policy={"per_tool": ["wire_transfer"]})
    lines: list[tuple[str, dict[str, Any]]] = [("wire_transfer", {"amount": 40}), ("render_video", {})]
    told = [0] * len(agent.pending.snapshot) if agent.pending is not None else []
    results: list[Any] = []
    record = agent.resume() if agent.pending is not None else None
    for place in range(len(told), len(lines)):
        if record is None:
            tool, args = lines[place]
            call = adk.PendingCall(call_id=FIRST + place, tool=tool, args=args)
            record = agent.call(call, snapshot=b"x" * place)
        results.append(adk.Resolved(record=record).to_json())
        record = None
    return results


def attempt(broker: Broker, run_id: str, sent: list[int]) -> RunState:
    with broker.take(run_id) as run:
        run.finish(play(run, sent))
    return broker.runs.get(run_id).state


@pytest.mark.row("A17", "A23")
def test_a_script_waits_is_decided_about_and_completed(server: RunningServer, namespace: str) -> None:
    sent: list[int] = []
    with Broker(server.url, namespace=namespace, by=Principal.local("me")) as broker:
        run_id = broker.start("analyst", session="s").run_id
        session = adk.AgentSession(broker, "s", "analyst")
        assert attempt(broker, run_id, sent) is RunState.WAITING
        (told,) = session.confirm(lambda _: str(Event().wait()), timeout=timedelta(milliseconds=20))
        assert (told.error, told.open) == ("timeout", True)
        (told,) = session.confirm(
            lambda request: "approve" if request.tool_name == "wire_transfer" else "deny"
        )
        assert told.accepted
        assert attempt(broker, run_id, sent) is RunState.WAITING
        frozen = session.load()
        assert frozen is not None
        assert frozen.disposition == adk.AwaitingCompletion(pending_handle="j-9")
        assert session.complete(completion("render_video", "v-9")).released
        assert attempt(broker, run_id, sent) is RunState.FINISHED
        assert (broker.runs.get(run_id).result, sent) == ([value("v-9")], [40])
