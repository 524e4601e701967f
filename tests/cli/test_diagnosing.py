"""`why` and `check`: why a run stands where it stands, what is wrong, and the exit code that says so."""

from datetime import timedelta

import pytest

from broker import Audience, Broker, Interrupt
from tests.cli.conftest import Ask, Cli, approval
from tests.clients.watching import place, reads, sweeps, works


def run_of(broker: Broker, interrupt: str) -> str:
    return broker.inbox.get(interrupt).run_id


def test_why_a_question_waits(cli: Cli, ask: Ask, broker: Broker) -> None:
    broker._link.client.execute_command(*reads(broker))
    broker._link.run(sweeps(broker))
    waiting = ask(approval(expires_in=timedelta(hours=2), reviewers=("finance",)))
    told = cli("why", run_of(broker, waiting))
    lines = [line.strip() for line in told.out.splitlines()]
    assert told.code == 0
    assert lines[0] == "desk  waiting"
    assert lines[2].startswith("It waits for an answer to int_")
    facts = {line.split("  ")[0]: line for line in lines}
    assert "in 2 h: deadline of" in facts["next"]
    assert facts["sweeper"].endswith("s-1")
    assert facts["read by"].endswith("approvals")
    assert facts["due"].endswith("in 2 h; then it is denied")
    assert f"refund_payment  {waiting}" in lines
    assert [line.split()[2] for line in lines[lines.index("last events") + 1 :]] == [
        "started",
        "leased",
        "suspended",
    ]


def test_why_as_json_has_stable_keys(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask(approval(expires_in=None))
    found = cli("why", run_of(broker, waiting), "--json").json
    assert list(found) == [
        "run_id", "session_id", "agent", "queue", "build", "state", "seq", "cause", "stuck", "reason", "remedy",
        "at_ms",
        "holder", "lease_until_ms", "back_off_until_ms", "ahead", "awaited", "workers", "sweeper", "next_timer_ms",
        "timer", "error", "history",
    ]  # fmt: skip
    assert (found["state"], found["cause"], found["stuck"]) == ("waiting", "answer", True)
    (one,) = found["awaited"]
    assert list(one) == [
        "interrupt_id", "kind", "tool", "audience", "reviewers", "readers", "deadline_ms", "at_deadline", "problem",
    ]  # fmt: skip
    assert (one["interrupt_id"], one["readers"], one["deadline_ms"]) == (waiting, [], None)
    assert [entry["event"] for entry in found["history"]] == ["started", "leased", "suspended"]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("ready", "It is ready, and no worker that is alive takes agent desk on queue agents."),
        ("busy", "It is ready, and the worker for it has no room."),
        ("leased", "worker-1 runs it."),
        ("failed", "Its last attempt failed; it is to come back, and no process sweeps."),
        ("dead", "It is dead, after a failure: an operator decides."),
        ("finished", "It is finished."),
        ("unread", "Nobody reads the completions, and int_"),
    ],
)
def test_why_says_it_of_each_kind(kind: str, says: str, cli: Cli, broker: Broker) -> None:
    run_id = broker.start("desk", session="s").run_id or ""
    if kind == "busy":
        broker._link.run(works(broker, agents=("desk",), holding=4))
    elif kind != "ready":
        (run,) = broker.queue("agents").lease(("desk",), holder="worker-1")
        if kind in ("failed", "dead"):
            run.fail("Boom", "the letter was empty", final=kind == "dead")
        elif kind == "finished":
            run.finish()
        elif kind == "unread":
            run.suspend(Interrupt.question("?", expires_in=None, audience=Audience.COMPLETIONS))
    told = " ".join(cli("why", run_id).out.split())
    assert says in told
    assert ("stuck" in told.split("It ")[0]) is (kind not in ("busy", "leased", "finished"))


def test_why_shows_no_strangers_control_characters(cli: Cli, broker: Broker) -> None:
    run_id = broker.start("desk", session="s").run_id or ""
    (run,) = broker.queue("agents").lease(("desk",), holder="worker-1")
    run.fail("Boom", "\x1b[2Jno", final=True)
    assert "\x1b" not in cli("why", run_id).out


def test_why_of_a_run_nobody_knows(cli: Cli) -> None:
    told = cli("why", "run_" + "0" * 30, "--json")
    assert (told.code, told.fault["code"]) == (4, "unknown")


def test_a_check_of_a_namespace_that_is_well(cli: Cli, ask: Ask, broker: Broker) -> None:
    assert cli("check").code == 0
    broker._link.run(sweeps(broker))
    ask()
    told = cli("check")
    assert (told.code, told.out.startswith("Nothing is wrong. ")) == (0, True)


def test_a_check_tells_what_is_wrong_and_what_to_do(cli: Cli, ask: Ask, broker: Broker) -> None:
    broker._link.run(sweeps(broker))
    waiting = ask(approval(expires_in=None))
    told = cli("check")
    assert told.code == 1
    said = " ".join(told.out.split())
    assert said.startswith(f"nobody_answers {waiting} has no deadline that would end it")
    assert f"broker withdraw {run_of(broker, waiting)}" in said
    assert "1 finding. " in said


def test_a_check_as_json(cli: Cli, ask: Ask, broker: Broker) -> None:
    broker._link.run(sweeps(broker))
    waiting = ask(approval(expires_in=None))
    run_id = broker.start("desk", session="s").run_id or ""
    (run,) = broker.queue("agents").lease(("desk",))
    run.fail("Boom", final=True)
    told = cli("check", "--json")
    assert told.code == 1
    found = told.json
    assert list(found) == ["namespace", "at_ms", "findings", "dead", "looked_at", "cursor", "ok"]
    assert (found["ok"], found["dead"], found["cursor"]) == (False, [run_id], None)
    assert found["findings"] == [
        {
            "trouble": "nobody_answers", "text": found["findings"][0]["text"],
            "remedy": found["findings"][0]["remedy"], "run_id": run_of(broker, waiting), "interrupt_id": waiting,
            "session_id": "session-0",
        }
    ]  # fmt: skip


def test_a_check_says_when_it_has_not_seen_all(cli: Cli, ask: Ask, broker: Broker) -> None:
    broker._link.run(sweeps(broker))
    for _ in range(3):
        ask()
    assert cli("check", "--limit", "1", "--json").json["cursor"] is not None
    assert cli("check", "--json").json["looked_at"] > 3
    assert "there is more" in " ".join(cli("check", "--limit", "1").out.split())


def test_a_check_takes_a_span(cli: Cli, broker: Broker) -> None:
    assert cli("check", "--within", "5m").code == 0
    assert cli("check", "--within", "soon", "--json").fault["field"] == "--within"
    broker._link.client.execute_command("HSET", place(broker).key("workers"), "w", b"1 \xff")
    assert cli("check").code == 0
