"""`status`, `dead`, `requeue`, `move`, `withdraw`: the fleet, and runs that need an operator."""

import asyncio
from typing import Any

from broker import Broker, Run, Worker
from broker.errors import OUTCOME_CODES
from broker.testing import await_until
from tests.cli.conftest import Ask, Cli


def die(broker: Broker, session: str = "s") -> str:
    started = broker.start("desk", None, session=session)
    (run,) = broker.queue("agents").lease(("desk",), holder="worker-1")
    run.fail("ValueError", "order 12 is not there", final=True)
    assert started.run_id is not None
    return started.run_id


def test_the_state_of_an_empty_namespace(cli: Cli, environment: dict[str, str]) -> None:
    told = cli("status")
    assert told.code == 0
    first, namespace, server, *rest = told.out.splitlines()
    assert first.split() == ["0", "waiting", "for", "an", "answer", "0", "ready", "0", "running", "0", "dead"]
    assert namespace == f"namespace {environment['BROKER_NAMESPACE']}"
    assert server.startswith(("unix://", "redis://"))
    assert rest[-1] == "No worker has said that it is there."
    assert cli("status", "--json").json == {
        "namespace": environment["BROKER_NAMESPACE"], "open": 0, "oldest_ms": None, "dead": 0, "pools": [],
        "workers": [], "server": server,
    }  # fmt: skip


def test_the_state_of_a_fleet(cli: Cli, ask: Ask, broker: Broker) -> None:
    ask()
    broker.start("desk", None, session="ready")
    die_in_queue = broker.start("desk", None, session="dead", queue="other")
    (run,) = broker.queue("other").lease(("desk",), holder="worker-1")
    assert run.id == die_in_queue.run_id
    run.fail("ValueError", final=True)
    told = cli("status", "--json").json
    assert (told["open"], told["dead"]) == (1, 1)
    assert {(pool["queue"], pool["agent"]): pool["ready"] for pool in told["pools"]}["agents", "desk"] == 1
    assert cli("status").out.split()[:5] == ["1", "waiting", "for", "an", "answer"]


async def test_workers_are_seen(environment: dict[str, str], broker: Broker, cli: Cli) -> None:
    async def desk(run: Run[Any]) -> str:
        return run.id

    worker = Worker(environment["BROKER_URL"], namespace=environment["BROKER_NAMESPACE"], name="worker-7")
    worker.add("desk", desk)
    serving = asyncio.create_task(worker.serve())
    await await_until(
        lambda: asyncio.to_thread(lambda: broker.fleet().workers), what="a worker that is there"
    )
    told = await asyncio.to_thread(cli, "status", "--json")
    shown = await asyncio.to_thread(cli, "status")
    worker.stop()
    await serving
    (one,) = told.json["workers"]
    assert (one["name"], one["agents"], one["alive"]) == ("worker-7", ["desk"], True)
    assert "worker-7" in shown.out


def test_dead_runs_are_listed_with_their_last_failure(cli: Cli, broker: Broker) -> None:
    assert cli("dead").out == "No run is dead.\n"
    assert cli("dead", "--json").json == []
    run_id = die(broker)
    shown = cli("dead").out
    assert run_id in shown.splitlines()
    assert "ValueError: order 12 is not there" in " ".join(shown.split())
    (record,) = cli("dead", "--json").json
    assert (record["id"], record["state"]) == (run_id, "dead")


def test_f54_a_dead_run_is_sent_back(cli: Cli, broker: Broker) -> None:
    run_id = die(broker)
    told = cli("requeue", run_id, "--as", "op")
    assert (told.code, told.out) == (0, "Sent back.\n")
    assert broker.runs.ready("agents") == (run_id,)
    assert broker.history("s")[-1].event == "requeued"


def test_f54_a_dead_run_is_sent_to_another_queue(cli: Cli, broker: Broker) -> None:
    run_id = die(broker)
    assert cli("requeue", run_id, "--queue", "slow", "--json").json["code"] == "accepted"
    assert broker.runs.ready("slow") == (run_id,)


def test_f54_a_waiting_run_is_moved_with_its_questions(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask()
    run_id = broker.inbox.get(waiting).run_id
    assert cli("move", run_id, "slow").out == "Moved to slow.\n"
    assert [item["id"] for item in cli("ls", "--queue", "slow", "--json").json["items"]] == [waiting]
    assert cli("ls", "--queue", "agents", "--json").json["items"] == []


def test_f54_a_stuck_wait_is_finished_by_hand(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask()
    assert cli("cancel", waiting, "--reason", "stuck").code == 0
    assert broker.inbox.get(waiting).state == "cancelled"
    assert broker.runs.ready("agents") == (broker.inbox.get(waiting).run_id,)


def test_what_cannot_be_sent_back_is_refused(cli: Cli, ask: Ask, broker: Broker) -> None:
    run_id = broker.inbox.get(ask()).run_id
    told = cli("requeue", run_id)
    assert told.out.startswith("Not counted: ")
    assert told.code == OUTCOME_CODES[cli("requeue", run_id, "--json").json["code"]].exit_code != 0


def test_a_withdrawn_run_is_closed(cli: Cli, ask: Ask, broker: Broker) -> None:
    run_id = broker.inbox.get(ask()).run_id
    assert cli("withdraw", run_id, "--json").json["code"] == "accepted"
    assert cli("show", run_id, "--json").json["state"] == "withdrawn"
