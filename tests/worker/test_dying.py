"""Workers that die, stop in their tracks, or block: P6."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from broker import Approve, AsyncBroker, RunState
from broker.store import scripts
from broker.testing import RunningServer
from tests.records import fields

from .agents.serving import LATE
from .fleet import LEASE, Agents, ended, run_when

Start = Callable[..., Agents]


async def test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_run(
    broker: AsyncBroker, agents: Start
) -> None:
    started = await broker.start("blocks", 3 * LEASE.total_seconds(), session="s")
    first, second = agents(name="one"), agents(name="two")
    run = await ended(broker, started.run_id)
    assert (run.state, run.fence, run.errors) == (RunState.FINISHED, 1, ())
    assert run.result in (first.pid, second.pid)


async def test_the_run_of_a_killed_worker_goes_to_another(broker: AsyncBroker, agents: Start) -> None:
    started = await broker.start("hangs", session="s")
    first = agents(name="one")
    assert first.begins() == started.run_id
    second = agents(name="two", agents=["hangs"])
    first.kill()
    run = await ended(broker, started.run_id)
    assert (run.state, run.fence, run.result) == (RunState.FINISHED, 2, second.pid)
    assert "lease_lost" in run.errors[0]
    events = [entry.event for entry in await broker.history("s")]
    assert events == ["started", "leased", "lease_lost", "leased", "finished"]


async def test_a_run_that_waits_outlives_every_worker(broker: AsyncBroker, agents: Start) -> None:
    started = await broker.start("pauses", session="s")
    first = agents(name="one")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    first.kill()
    assert (await broker.inbox.answer(paused.interrupt_ids[0], Approve())).ok
    second = agents(name="two")
    run = await ended(broker, paused.id)
    assert run.result == {"kind": "approve", "pid": second.pid}


SCRIPTS = Path(scripts.__file__).parent / "lua"


def test_R03_every_script_that_takes_a_lease_is_tried_late() -> None:
    found = {path.stem for path in SCRIPTS.glob("[a-z]*.lua") if "'stale_lease'" in path.read_text()}
    assert found == set(LATE)


async def test_R03_a_worker_stopped_past_its_lease_writes_nothing(
    broker: AsyncBroker, agents: Start, server: RunningServer, tmp_path: Path
) -> None:
    """While another holds the run: finish, pause, failure, renewal, and each record of the journal is refused.

    Off: guard `fence` of the prelude, or `holds` in any one script.
    """
    go_on = tmp_path / "go on"
    started = await broker.start("clings", str(go_on), session="s")
    first = agents(name="one", agents=["clings"])
    assert first.begins() == started.run_id
    first.pause()
    second = agents(name="two", agents=["clings"])
    assert second.begins() == started.run_id
    before = contents(server, broker.namespace)
    first.resume()
    assert first.says("told ") == "told " + " ".join(f"{name}:refused" for name in LATE)
    assert contents(server, broker.namespace) == before
    go_on.touch()
    done = await ended(broker, started.run_id)
    assert (done.state, done.fence, done.result) == (RunState.FINISHED, 2, second.pid)


def contents(server: RunningServer, namespace: str) -> dict[bytes, Any]:
    """What the records of a namespace say; not until when the lease of its present holder is."""
    found: dict[bytes, Any] = {}
    with redis.Redis.from_url(server.url) as client:
        for kind in ("run", "calls", "journal", "history", "state", "result", "open", "dead", "ready"):
            for key in client.scan_iter(f"{{{namespace}*:{kind}*", count=1000):
                found[key] = client.dump(key)
                if b"}:run:" in key:
                    found[key] = fields(client.get(key))
                    found[key].pop("lease_until", None)
    assert found
    return found


@pytest.mark.parametrize("waiting", [1, 5])
async def test_what_a_killed_worker_held_goes_to_the_others_whole(
    broker: AsyncBroker, agents: Start, waiting: int
) -> None:
    ids = [(await broker.start("hangs", session=f"s{n}")).run_id for n in range(waiting)]
    first = agents(name="one", concurrency=10)
    assert {first.begins() for _ in range(waiting)} == set(ids)
    first.kill()
    second = agents(name="two")
    assert {(await ended(broker, one)).result for one in ids} == {second.pid}
