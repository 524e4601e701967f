"""The workers of the round trip, each a process: `python -m tests.seed_systems.moving ROLE URL NAMESPACE FILE`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from broker import AnswerKind, AsyncBroker, Edit, InterruptState, Principal, Run, Worker, current_call
from broker.interop import adk
from broker.interop.adk.keeping import frozen, question
from tests.worker.fleet import QUICK

AGENT, SESSION, RUN = "analyst", "th_2", "run_5"
EDITABLE: Final = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL)
CHECKPOINT: Final[dict[str, Any]] = {
    "iteration": 2,
    "transcript": [{"role": "user", "parts": [{"text": "pay"}]}],
    "snapshot": list(b"\x00line 7\xff"),
    "call": {"call_id": 7, "tool": "wire_transfer", "args": {"amount": 400, "to": "acct_2"}},
    "disposition": {"kind": "awaiting_confirmation"},
    "tool_roster": ["wire_transfer"],
}
MODEL: Final[dict[str, Any]] = {
    "provider": "acme",
    "model_id": "m-2",
    "thinking_level": "off",
    "thinking_budgets": None,
}


def state_of(checkpoint: adk.Checkpoint) -> InterruptState:
    """A checkpoint frozen with what swink wants to know beside it."""
    return frozen(checkpoint).model_copy(update={"system_prompt": "Be careful.", "model": MODEL})


async def pause(run: Run[Any], wire: dict[str, Any]) -> None:
    """Freezes the script of a run at its call."""
    checkpoint = adk.Checkpoint.from_json(wire)
    asked = question(checkpoint, EDITABLE)
    assert asked is not None
    await run.suspend(asked, state=state_of(checkpoint))


async def freeze(broker: AsyncBroker) -> None:
    """Worker A: a script of ADK-Rust comes to a call that somebody must confirm."""
    async with broker.adopt(AGENT, session=SESSION, key=RUN, protocol_id=RUN) as run:
        await pause(run, CHECKPOINT)


async def pack(broker: AsyncBroker) -> None:
    """Another worker goes on from the edit: it freezes the script again, at the call as it was approved."""
    (run_id,) = await broker.active(SESSION)
    async with broker.take(run_id) as run:
        edit = run.resolution("7").answer
        assert isinstance(edit, Edit)
        await pause(run, {**CHECKPOINT, "call": {**CHECKPOINT["call"], "args": edit.arguments}})


async def serve(url: str, namespace: str, file: Path) -> None:
    """Worker B: runs the script on, and writes down what its tool was called with."""

    def wire_transfer(amount: int, to: str) -> str:
        call = current_call()
        file.write_text(json.dumps({"id": call.id, "args": {"amount": amount, "to": to}}))
        return f"sent {amount}"

    async def analyst(run: Run[Any]) -> Any:
        agent = adk.CodeAct(run, [wire_transfer], policy="always")
        assert agent.pending is not None
        record = await agent.resume()
        return {"record": adk.Resolved(record=record).to_json(), "snapshot": list(agent.pending.snapshot)}

    worker = Worker(url, namespace=namespace, settings=QUICK)
    worker.add(AGENT, analyst)
    await worker.serve()


async def main() -> None:
    role, url, namespace, file = sys.argv[1:]
    if role == "serve":
        await serve(url, namespace, Path(file))
        return
    async with AsyncBroker(url, namespace=namespace, by=Principal.local(role)) as broker:
        await (freeze if role == "freeze" else pack)(broker)


if __name__ == "__main__":
    asyncio.run(main())
