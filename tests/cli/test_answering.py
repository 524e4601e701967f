"""The six answers, what becomes of them, and the exit codes."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from broker import Action, Broker, Interrupt
from broker.errors import OUTCOME_CODES
from tests.cli.conftest import Ask, Cli, approval

OFFERS = ("approve", "edit", "reject", "cancel")


def completion() -> Interrupt:
    return Interrupt.completion(Action(tool="render", arguments={}), "call_9", {"job": 7})


@pytest.mark.report("RB68")
@pytest.mark.parametrize(
    ("question", "words", "wire", "sentence"),
    [
        (approval(), ["approve"], {"kind": "approve"}, "Approved."),
        (approval(), ["approve", "--note", "fine"], {"kind": "approve", "note": "fine"}, "Approved."),
        (
            approval(offers=OFFERS),
            ["approve", "--edit", '{"order":"1142","amount":20}'],
            {"kind": "edit", "arguments": {"order": "1142", "amount": 20}},
            "Approved with other arguments.",
        ),
        (approval(), ["reject", "--reason", "no"], {"kind": "reject", "reason": "no"}, "Rejected."),
        (approval(), ["reject", "--note", "no"], {"kind": "reject", "reason": "no"}, "Rejected."),
        (Interrupt.question(1), ["respond", "false"], {"kind": "respond", "payload": False}, "Answered."),
        (Interrupt.question(1), ["respond", '"Elm"'], {"kind": "respond", "payload": "Elm"}, "Answered."),
        (completion(), ["complete", "null"], {"kind": "complete", "value": None}, "Completed."),
        (completion(), ["fail", "no disk"], {"kind": "fail", "error": "no disk"}, "Failed."),
        (approval(), ["cancel"], {"kind": "cancel"}, "Cancelled."),
        (approval(), ["cancel", "--reason", "late"], {"kind": "cancel", "reason": "late"}, "Cancelled."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_RB68_every_answer_is_stored_as_given_and_the_run_goes_on(
    cli: Cli, ask: Ask, broker: Broker, question: Interrupt, words: list[str], wire: Any, sentence: str
) -> None:
    """Whatever the channel, there is one way on. Off: guard `complete` of the prelude."""
    verb, *rest = words
    waiting = ask(question)
    told = cli(verb, waiting, *rest, "--as", "ana")
    record = broker.inbox.get(waiting)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [sentence, "The run goes on at the next free worker.", record.run_id]
    assert record.resolution is not None
    assert record.resolution.answer is not None
    assert record.resolution.answer.to_wire() == wire
    assert record.resolution.by is not None
    assert (record.resolution.by.id, record.resolution.by.verified) == ("ana", False)


def test_an_accepted_answer_as_json(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask()
    told = cli("approve", waiting, "--json", "--as", "ana").json
    assert told["code"] == "accepted"
    assert told["run_id"] == broker.inbox.get(waiting).run_id
    assert told["durability"] == "memory"


def test_the_same_answer_again_is_the_same_operation(cli: Cli, ask: Ask) -> None:
    waiting = ask()
    cli("approve", waiting, "--as", "ana")
    again = cli("approve", waiting, "--as", "ana")
    assert again.code == 0
    assert again.out.startswith("Approved. It had been done before, by the same party.\n")
    assert cli("approve", waiting, "--as", "ana", "--json").json["code"] == "replayed"


def test_f57_the_decision_and_the_wake_up_are_one_step(cli: Cli, ask: Ask, broker: Broker) -> None:
    waiting = ask()
    cli("approve", waiting)
    run_id = broker.inbox.get(waiting).run_id
    assert broker.runs.ready("agents") == (run_id,)
    assert cli("show", run_id, "--json").json["state"] == "ready"


def test_the_second_is_told_who_was_first(cli: Cli, ask: Ask) -> None:
    waiting = ask()
    cli("approve", waiting, "--as", "ana")
    told = cli("reject", waiting, "--reason", "no", "--as", "bob")
    assert told.code == OUTCOME_CODES["already_decided"].exit_code
    assert told.out.startswith("Not counted: ana was first with approve, ")
    winner = cli("reject", waiting, "--reason", "no", "--as", "bob", "--json").json["winner"]
    assert (winner["by"]["id"], winner["answer"]) == ("ana", "approve")


def test_f37_a_later_answer_is_told_that_the_question_was_withdrawn(
    cli: Cli, ask: Ask, broker: Broker
) -> None:
    waiting = ask()
    run_id = broker.inbox.get(waiting).run_id
    assert cli("withdraw", run_id, "--reason", "not needed", "--as", "asker").out == "Withdrawn.\n"
    told = cli("approve", waiting)
    assert told.code == OUTCOME_CODES["withdrawn"].exit_code
    assert told.out.startswith("Not counted: asker took the question back, ")


def test_an_answer_after_the_deadline(cli: Cli, ask: Ask) -> None:
    waiting = ask(approval(expires_in=timedelta(milliseconds=1)))
    told = cli("approve", waiting)
    assert told.code == OUTCOME_CODES["expired"].exit_code
    assert told.out.startswith("Not counted: its time was over")


@pytest.mark.parametrize(
    ("question", "words", "code"),
    [
        (approval(), ["respond", "1"], "invalid"),
        (approval(), ["approve", "--edit", "{}"], "invalid"),
        (approval(), ["approve", "--seen", "1:another"], "invalid"),
        (Interrupt.question(1, {"type": "string"}), ["respond", "1"], "invalid"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_fit_is_refused_and_the_question_stays_open(
    cli: Cli, ask: Ask, broker: Broker, question: Interrupt, words: list[str], code: str
) -> None:
    verb, *rest = words
    waiting = ask(question)
    told = cli(verb, waiting, *rest)
    assert told.out.startswith("Not counted: ")
    outcome = cli(verb, waiting, *rest, "--json")
    assert outcome.json["code"] == code
    assert told.code == outcome.code == OUTCOME_CODES[code].exit_code
    assert broker.inbox.get(waiting).state == "open"


def test_seen_binds_the_answer_to_what_was_shown(cli: Cli, ask: Ask) -> None:
    waiting = ask()
    digest = cli("show", waiting, "--json").json["digest"]
    assert cli("approve", waiting, "--seen", digest).code == 0


def test_an_unknown_interrupt(cli: Cli) -> None:
    name = "int_0000" + "0" * 32
    told = cli("approve", name)
    assert told.code == OUTCOME_CODES["unknown"].exit_code
    assert name in told.out
    assert cli("approve", name, "--json").json == {"code": "unknown", "id": name}


def test_json_from_a_file(cli: Cli, ask: Ask, broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"street": "Elm Street 12", "city": "Malmö"}), encoding="utf-8")
    waiting = ask(Interrupt.question("where?"))
    assert cli("respond", waiting, f"@{path}").code == 0
    resolution = broker.inbox.get(waiting).resolution
    assert resolution is not None
    assert resolution.answer is not None
    assert resolution.answer.to_wire()["payload"]["city"] == "Malmö"


def test_json_from_standard_input(process: Cli, ask: Ask) -> None:
    waiting = ask(Interrupt.question("how many?"))
    told = process("respond", waiting, "-", "--json", said="[1, 2]")
    assert told.json["code"] == "accepted"
