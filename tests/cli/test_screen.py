"""What is on the screen fits it, is calm, and does nothing to the terminal."""

import json
import unicodedata
from datetime import timedelta
from importlib import metadata

import pytest
import redis
from rich.cells import cell_len

from broker import Action, Broker, Interrupt, Principal
from broker.cli.entry import COMMANDS
from broker.cli.given import read_span
from broker.cli.safe import brief_json, machine_json, pretty_json, safe, safe_lines
from tests.cli.conftest import Ask, Cli, approval

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202etxt.exe \u2028\u200b\x00\x7f\ud800 end"
LONG = "x" * 256


def is_harmless(text: str) -> bool:
    """Whether nothing in it but a line's end does anything to a terminal."""
    return all(char == "\n" or unicodedata.category(char)[0] != "C" for char in text)


@pytest.mark.parametrize("make", [safe, safe_lines, pretty_json, brief_json, machine_json])
def test_nothing_that_acts_on_a_terminal_is_left(make: object) -> None:
    assert callable(make)
    assert is_harmless(make(HOSTILE).replace("\u2028", ""))
    assert make("Grüße, 日本, 🙂").encode()


def test_shown_json_is_still_json() -> None:
    value = {"a": ["\x1b[2J", "\u202e", "\U000e0041", "ö", 1.5, None, {"\x07": True}]}
    assert (
        json.loads(pretty_json(value))
        == json.loads(machine_json(value))
        == json.loads(brief_json(value))
        == value
    )


def test_escapes_say_what_they_stand_for() -> None:
    assert safe("a\x1b[0mb\u00a0c") == "a\\u001b[0mb c"
    assert safe_lines("a\r\nb\tc\x07") == "a\nb   c\\u0007"


def hostile(**more: object) -> Interrupt:
    text = HOSTILE.replace("\ud800", "")
    return Interrupt.approval(
        Action(tool="wipe", arguments={text: [text, {"deep": text}]}), "call_1", message=text, labels=(text,),
        reviewers=(text,), metadata={text: text}, policy=text, payload=text, **more,
    )  # fmt: skip


def test_what_agents_and_people_write_cannot_act_on_the_terminal(cli: Cli, ask: Ask, broker: Broker) -> None:
    text = HOSTILE.replace("\ud800", "")
    waiting = ask(hostile(), session="s")
    second = ask(hostile())
    run_id = broker.inbox.get(waiting).run_id
    broker.start("desk", {text: text}, session="d")
    (run,) = broker.queue("agents").lease(("desk",), holder="worker-1")
    run.fail("ValueError", text, final=True)
    seen = [cli("reject", second, "--reason", text), cli("reject", second, "--reason", "no", "--as", "bob")]
    for words in (["ls"], ["show", waiting], ["show", second], ["show", run_id], ["show", run.id], ["history", "s"],
                  ["dead"], ["status"], ["approve", waiting, "--note", text]):  # fmt: skip
        seen += [cli(*words, "--json"), cli(*words)]
    assert [one for one in seen if not is_harmless(one.out + one.err)] == []


def test_markup_of_others_is_text(cli: Cli, ask: Ask) -> None:
    waiting = ask(approval("[red]x[/red]", message="[bold]hi[/bold] :smile:"))
    shown = cli("show", waiting).out
    assert shown.startswith("[red]x[/red]  open\n[bold]hi[/bold] :smile:\n")


def wide() -> Interrupt:
    return Interrupt.approval(
        Action(tool="t" * 256, arguments={"text": "日本" * 200, "list": list(range(100))}), "c" * 256,
        message="m" * 500, labels=(LONG, "eu"), reviewers=(LONG,), expires_in=timedelta(days=400),
        requested_by=Principal.local(LONG),
    )  # fmt: skip


def test_everything_fits_80_columns_and_no_id_is_cut(cli: Cli, broker: Broker) -> None:
    name = "q" * 64
    broker.start(name, {"text": LONG}, session=LONG, queue=name, build=name)
    (run,) = broker.queue(name).lease((name,), build=name, holder=LONG)
    (waiting,) = run.suspend(wide()).interrupt_ids
    started = broker.start(name, None, session="d", queue=name)
    (dying,) = broker.queue(name).lease((name,), holder=LONG)
    dying.fail("ValueError", LONG, final=True)
    assert started.run_id == dying.id
    seen = {
        words: cli(*words)
        for words in (
            ("ls",), ("ls", "--limit", "1"), ("show", waiting), ("show", run.id), ("show", dying.id), ("dead",),
            ("history", LONG), ("status",), ("approve", waiting, "--note", LONG),
            ("reject", waiting, "--reason", LONG, "--as", LONG), ("show", waiting), ("show", LONG),
        )
    }  # fmt: skip
    too_wide = [
        (words, line)
        for words, told in seen.items()
        for line in (told.out + told.err).splitlines()
        if cell_len(line) > 80
    ]
    assert too_wide == []
    assert waiting in seen["ls",].out.split()
    assert waiting in seen["history", LONG].out.split()
    assert run.id in seen["show", waiting].out.split()
    assert dying.id in seen["dead",].out.split()
    assert LONG in "".join(seen["show", waiting].out.split())


def test_help_fits_too_and_names_every_command(cli: Cli) -> None:
    whole = cli("--help")
    assert whole.code == 0
    assert cli().out == whole.out
    assert len(whole.out.splitlines()) <= 40
    for _, name, _ in COMMANDS:
        told = cli(*name.split(), "--help")
        assert told.code == 0
        assert [line for line in told.out.splitlines() if cell_len(line) > 80] == []
        first, _, second = name.partition(" ")
        assert f" {first} " in whole.out
        assert not second or f" {second} " in cli(first, "--help").out
        assert "--json" in told.out
        assert [line for line in whole.out.splitlines() if cell_len(line) > 80] == []


def test_the_version(cli: Cli) -> None:
    version = metadata.version("interrupt-broker")
    assert cli("--version").out == f"interrupt-broker {version}\n"
    assert cli("--version", "--json").json == {"version": version}


def test_what_cannot_be_read_is_listed_shown_and_can_be_cancelled(
    cli: Cli, ask: Ask, environment: dict[str, str]
) -> None:
    waiting = ask()
    with redis.Redis.from_url(environment["BROKER_URL"]) as client:
        (key,) = client.keys(f"*:question:{waiting}")
        client.set(key, b"\x1b[2Jbroken")
    listed, shown = cli("ls"), cli("show", waiting)
    assert listed.out.splitlines()[1].startswith("unreadable  ")
    assert waiting in listed.out
    assert f"question:{waiting}" in "".join(shown.out.split())
    assert is_harmless(listed.out + shown.out)
    assert cli("show", waiting, "--json").json["problem"]
    assert cli("cancel", waiting).out.startswith("Cancelled.\n")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("90s", 90), ("90", 90), ("5m", 300), ("2h", 7200), ("1d12h", 129600), ("0", 0), (" 1h ", 3600)],
)
def test_spans_of_time(given: str, seconds: int) -> None:
    assert read_span("x", given) == timedelta(seconds=seconds)
