"""`ls`, `show`, `history`: what waits, one record whole, what happened."""

from datetime import timedelta

import pytest

from broker import Action, Broker, Interrupt, InterruptState, Phase, ScheduledPause
from tests.cli.conftest import Ask, Cli, approval


def test_nothing_waits(cli: Cli) -> None:
    assert cli("ls").out == "Nothing waits for an answer.\n"
    assert cli("ls", "--tool", "x").out == "Nothing waits that fits.\n"
    assert cli("ls", "--json").json == {"items": [], "cursor": None, "looked_at": 0}


def test_ls_tells_what_waits_and_its_id(cli: Cli, ask: Ask) -> None:
    first = ask(approval(expires_in=timedelta(hours=2)))
    second = ask(Interrupt.completion(Action(tool="trace_parcel", arguments={}), "c", expires_in=None))
    third = ask(Interrupt(kind=ScheduledPause(phase=Phase.BEFORE, node="quote")), queue="slow")
    rows = [line.split() for line in cli("ls").out.splitlines()]
    assert rows[0] == ["FOR", "WHAT", "QUEUE", "AGE", "DUE", "IN"]
    assert rows[1][:3] + rows[1][4:] == ["approval", "refund_payment", "agents", "2h"]
    assert rows[3][:3] + rows[3][4:] == ["completion", "trace_parcel", "agents", "never"]
    assert rows[5][:5] == ["answer", "paused", "before", "quote", "slow"]
    assert [rows[2], rows[4], rows[6]] == [[first], [second], [third]]


def test_ls_as_json_has_stable_keys(cli: Cli, ask: Ask) -> None:
    waiting = ask()
    page = cli("ls", "--json").json
    assert page["cursor"] is None
    assert page["looked_at"] == 1
    (item,) = page["items"]
    assert list(item) == [
        "id", "run_id", "session_id", "seq", "queue", "agent", "build", "state", "opened_at_ms", "deadline_ms",
        "heartbeat_by_ms", "interrupt", "digest", "resolution", "problem",
    ]  # fmt: skip
    assert item["id"] == waiting
    assert item["state"] == "open"
    assert item["resolution"] is None
    assert item["interrupt"]["action"] == {
        "tool": "refund_payment",
        "arguments": {"order": "1142", "amount": 38.5},
    }


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--queue", "slow"], "b"),
        (["--tool", "cancel_order"], "b"),
        (["--kind", "custom"], "c"),
        (["--kind", "approval_pending"], "ab"),
        (["--label", "eu"], "ac"),
        (["--reviewer", "finance"], "a"),
        (["--label", "eu", "--kind", "custom"], "c"),
        (["--older-than", "0s"], "abc"),
        (["--older-than", "1h"], ""),
        ([], "abc"),
    ],
    ids=" ".join,
)
def test_f48_waits_are_listed_by_queue_tool_kind_label_reviewer_and_age(
    cli: Cli, ask: Ask, filters: list[str], found: str
) -> None:
    ids = {
        ask(approval(labels=("eu",), reviewers=("finance",))): "a",
        ask(approval("cancel_order"), queue="slow"): "b",
        ask(Interrupt.question({"which": "address"}, labels=("eu",))): "c",
    }
    items = cli("ls", "--json", *filters).json["items"]
    assert "".join(ids[item["id"]] for item in items) == found


def test_f48_pages_go_on_from_their_cursor_until_all_was_seen(cli: Cli, ask: Ask) -> None:
    ids = [ask() for _ in range(5)]
    seen, cursor = [], None
    while True:
        page = cli("ls", "--json", "--limit", "2", *(["--cursor", cursor] if cursor else [])).json
        seen += [item["id"] for item in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == ids
    shown = cli("ls", "--limit", "2").out
    assert "There is more: the same with --cursor 0." in shown


def test_show_tells_everything_a_decider_needs(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask(
        approval(message="May I?", labels=("eu",), reviewers=("finance",), offers=("approve", "edit"))
    )
    record = broker.inbox.get(waiting)
    shown = cli("show", waiting).out
    assert shown.startswith("refund_payment  open\nMay I?\n")
    for fact in (
        '"amount": 38.5',
        record.run_id,
        record.session_id,
        record.digest,
        "finance",
        "approve, edit",
        "eu",
    ):
        assert fact in shown
    assert shown.endswith(f"broker approve {waiting} \\\n  --seen {record.digest}\n")
    assert cli("show", waiting, "--json").json["digest"] == record.digest


def test_show_tells_the_frozen_state_where_it_is_asked_for(cli: Cli, broker: Broker) -> None:
    broker.start("desk", None, session="s")
    (run,) = broker.queue("agents").lease(("desk",), holder="worker-1")
    state = InterruptState(context_snapshot=[{"role": "user", "content": "where is my lamp?"}])
    (waiting,) = run.suspend(approval(), state=state).interrupt_ids
    assert "where is my lamp?" not in cli("show", waiting).out
    for name in (waiting, run.id):
        assert "where is my lamp?" in cli("show", name, "--state").out
        frozen = cli("show", name, "--state", "--json").json["frozen"]
        assert frozen["context_snapshot"][0]["content"] == "where is my lamp?"
        assert frozen["pending_tool_calls"][0]["tool_call_id"] == "call_1"


def test_show_tells_how_it_ended(cli: Cli, ask: Ask) -> None:
    waiting = ask()
    cli("reject", waiting, "--reason", "too much", "--as", "ana")
    shown = cli("show", waiting).out
    assert shown.startswith("refund_payment  answered\n")
    assert "rejected by ana, " in shown
    assert "  too much\n" in shown
    assert "--seen" not in shown
    assert cli("show", waiting, "--json").json["resolution"]["answer"] == {
        "kind": "reject",
        "reason": "too much",
    }


def test_show_tells_of_a_run(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask()
    run_id = broker.inbox.get(waiting).run_id
    shown = cli("show", run_id).out
    assert shown.startswith("desk  waiting\n")
    assert f"asks     {waiting}" in shown
    assert '"letter": "hello"' in shown
    record = cli("show", run_id, "--json").json
    assert list(record) == [
        "id", "session_id", "agent", "build", "queue", "priority", "state", "seq", "fence", "tries", "holder",
        "lease_until_ms", "mode", "interrupt_ids", "created_at_ms", "updated_at_ms", "errors", "metadata", "input",
        "result", "protocol_ids",
    ]  # fmt: skip
    assert (record["state"], record["seq"], record["interrupt_ids"]) == ("waiting", 1, [waiting])
    assert record["result"] is None


def test_f47_history_tells_who_when_what_in_order(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask(session="s/1")
    cli("approve", waiting, "--as", "ana")
    shown = cli("history", "s/1").out
    run_id = broker.inbox.get(waiting).run_id
    assert shown.startswith(f"run {run_id}\n")
    rows = [line.split() for line in shown.splitlines()[1:] if line.strip()]
    assert [row[2] for row in rows if len(row) > 1] == ["started", "leased", "suspended", "resolved"]
    assert [row for row in rows if len(row) == 1] == [[waiting], [waiting]]
    assert "by asker" in shown
    assert "pause 1, by ana" in shown
    entries = cli("history", "s/1", "--json").json
    assert [entry["event"] for entry in entries] == ["started", "leased", "suspended", "resolved"]
    assert list(entries[0]) == [
        "at_ms", "event", "run_id", "seq", "interrupt_id", "state", "by", "op", "digest", "detail",
    ]  # fmt: skip
    assert [entry["by"]["id"] for entry in entries if entry["by"]] == ["asker", "ana"]
    assert entries == sorted(entries, key=lambda entry: entry["at_ms"])


def test_history_from_a_place_or_from_the_end(cli: Cli, ask: Ask) -> None:
    ask(session="s")

    def events(*words: str) -> list[str]:
        return [entry["event"] for entry in cli("history", "s", "--json", *words).json]

    assert events("--limit", "1") == ["started"]
    assert events("--start", "1", "--limit", "1") == ["leased"]
    assert events("--start", "-1") == ["suspended"]
    assert cli("history", "nobody").out == "Nothing is recorded for this session, or no longer.\n"
    assert cli("history", "nobody", "--json").json == []
