"""One pause through all four systems, in four processes and two namespaces.

A script of ADK-Rust is frozen, its call is shown and edited over AG-UI, moved as swink's file, and resumed by a command
of entelix.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker import Action, AsyncBroker, Principal
from broker.interop import adk, agui, entelix
from broker.interop.swink import BrokerStore, read_interrupt, write_interrupt
from broker.testing import RunningServer
from tests.worker.fleet import QUICK, ended

from .moving import AGENT, CHECKPOINT, MODEL, RUN, SESSION, state_of

ROOT = Path(__file__).parents[2]
EDITED = {"amount": 40, "to": "acct_2"}
ASKED, APPROVED = (
    Action(tool="wire_transfer", arguments=args) for args in (CHECKPOINT["call"]["args"], EDITED)
)


async def process(role: str, server: RunningServer, namespace: str, file: Path) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tests.seed_systems.moving", role, server.url, namespace, str(file)]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT)


async def test_a_pause_goes_through_all_four_systems(
    server: RunningServer, new_namespace: Callable[[], str], tmp_path: Path
) -> None:
    namespace, second, noted = new_namespace(), new_namespace(), tmp_path / "called.json"
    async with (
        AsyncBroker(server.url, namespace=namespace, by=Principal.local("kim")) as here,
        AsyncBroker(server.url, namespace=second, settings=QUICK, by=Principal.local("lee")) as there,
    ):
        assert await (await process("freeze", server, namespace, noted)).wait() == 0
        run_id = await answered_over_agui(here)
        assert await (await process("pack", server, namespace, noted)).wait() == 0

        file, frozen = await BrokerStore(here).load(SESSION), tmp_path / f"{SESSION}.interrupt.json"
        assert file is not None
        frozen.write_bytes(write_interrupt(file))
        moved = await BrokerStore(there, agent=AGENT).import_file(SESSION, frozen.read_bytes())
        assert (await here.runs.withdraw(run_id, reason="moved")).ok

        (asked,) = (await there.inbox.list()).items
        assert asked.interrupt.action is not None
        assert asked.interrupt.action.digest == APPROVED.digest
        again = await BrokerStore(there).load(SESSION)
        assert again is not None
        assert write_interrupt(again) == frozen.read_bytes()
        as_frozen = state_of(adk.Checkpoint.from_json(with_args(EDITED)))
        kept = read_interrupt(frozen.read_bytes())
        assert (kept.opaque, kept.context_snapshot, kept.model) == (
            as_frozen.opaque,
            as_frozen.context_snapshot,
            MODEL,
        )

        worker = await process("serve", server, second, noted)
        try:
            command = {"command": "approve_tool", "tool_use_id": "7", "decision": "approve"}
            sent = await entelix.send(there, SESSION, entelix.parse_command(command))
            assert sent.ok
            record = await ended(there, moved.run_id)
        finally:
            worker.terminate()
            await worker.wait()
    called = json.loads(noted.read_text())
    assert called == {"id": "7", "args": EDITED}
    assert Action(tool="wire_transfer", arguments=called["args"]).digest == APPROVED.digest
    assert record.result == {
        "record": {"kind": "resolved", "Value": "sent 40"},
        "snapshot": CHECKPOINT["snapshot"],
    }


async def answered_over_agui(broker: AsyncBroker) -> str:
    """The run whose question a client was shown and has answered with other arguments."""
    (run_id,) = await broker.active(SESSION)
    threads = agui.AsyncThreads(broker)
    shown = (await threads.ended(run_id, RUN)).to_json()
    (interrupt,) = shown["outcome"]["interrupts"]
    (record,) = (await broker.inbox.list()).items
    assert interrupt["id"] == record.id
    assert interrupt["metadata"]["toolCall"]["args"] == ASKED.arguments
    assert record.interrupt.action is not None
    assert record.interrupt.action.digest == ASKED.digest
    entry = {"interruptId": interrupt["id"], "status": "resolved"}
    payload = {"approved": True, "editedArgs": EDITED}
    body = {"threadId": SESSION, "runId": "run_6", "messages": [], "resume": [{**entry, "payload": payload}]}
    assert isinstance(await threads.receive(agui.RunAgentInput.from_json(body)), agui.Plan)
    return run_id


def with_args(args: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint at its call as it was approved."""
    return {**CHECKPOINT, "call": {**CHECKPOINT["call"], "args": args}}
