"""No traceback reaches a user: one sentence, one exit code, and JSON where JSON was asked for."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from broker._async.inbox import Inbox
from broker.cli import main
from broker.errors import ERROR_CODES
from broker.testing import ServerProcess, wait_until
from tests.cli.conftest import Ask, Cli

CANARY = "canary-5d0c1e"
UNKNOWN_RUN, UNKNOWN_INTERRUPT = "run_0000" + "0" * 26, "int_0000" + "0" * 32
UNKNOWN = ERROR_CODES["unknown"].exit_code
INVALID = ERROR_CODES["invalid"].exit_code

FAULTS: dict[str, tuple[list[str], int]] = {
    "no such command": (["lss"], INVALID),
    "no such option": (["ls", "--colour"], INVALID),
    "no id": (["show"], INVALID),
    "too many ids": (["show", "a", "b"], INVALID),
    "no reason": (["reject", UNKNOWN_INTERRUPT], INVALID),
    "a limit that is no number": (["ls", "--limit", CANARY], INVALID),
    "a limit out of range": (["ls", "--limit", "501"], INVALID),
    "a history limit out of range": (["history", "s", "--limit", "0"], INVALID),
    "a dead limit out of range": (["dead", "--limit", "0"], INVALID),
    "a cursor of another list": (["ls", "--cursor", CANARY], INVALID),
    "a span that is none": (["ls", "--older-than", CANARY], INVALID),
    "a span beyond time": (["ls", "--older-than", "99999999999999d"], INVALID),
    "a bad queue": (["ls", "--queue", "a b"], INVALID),
    "a bad namespace": (["ls", "--namespace", "A B"], INVALID),
    "a bad name": (["ls", "--as", "a\x1b[2J"], INVALID),
    "an empty name of a session": (["history", ""], INVALID),
    "a session with a brace": (["history", "{s}"], INVALID),
    "a half surrogate": (["history", "s\udc80"], INVALID),
    "a url of another kind": (["ls", "--url", "http://127.0.0.1"], INVALID),
    "a url without a scheme": (["ls", "--url", CANARY], INVALID),
    "a url with a bad port": (["ls", "--url", f"redis://:{CANARY}@127.0.0.1:port"], INVALID),
    "a url with a bad database": (["ls", "--url", f"redis://:{CANARY}@127.0.0.1/db"], INVALID),
    "a url with a bad option": (["ls", "--url", f"redis://127.0.0.1:1?colour={CANARY}"], INVALID),
    "bad json": (["respond", UNKNOWN_INTERRUPT, f"{{{CANARY}"], INVALID),
    "empty json": (["respond", UNKNOWN_INTERRUPT, ""], INVALID),
    "not a number": (["respond", UNKNOWN_INTERRUPT, "NaN"], INVALID),
    "too long a number": (["respond", UNKNOWN_INTERRUPT, "9" * 5000], INVALID),
    "nested too deep": (["respond", UNKNOWN_INTERRUPT, "[" * 100_000], INVALID),
    "nested too deep for us": (["respond", UNKNOWN_INTERRUPT, "[" * 100 + "]" * 100], INVALID),
    "a file that is not there": (["respond", UNKNOWN_INTERRUPT, f"@/nowhere/{CANARY}"], INVALID),
    "a folder": (["complete", UNKNOWN_INTERRUPT, "@."], INVALID),
    "a bad edit": (["approve", UNKNOWN_INTERRUPT, "--edit", CANARY], INVALID),
    "an unknown interrupt": (["show", UNKNOWN_INTERRUPT], UNKNOWN),
    "an id of nothing": (["show", "nothing"], UNKNOWN),
    "an unknown run": (["show", UNKNOWN_RUN], UNKNOWN),
    "an unknown run to send back": (["requeue", UNKNOWN_RUN], UNKNOWN),
    "an unknown run to move": (["move", UNKNOWN_RUN, "q"], UNKNOWN),
    "an unknown run to withdraw": (["withdraw", UNKNOWN_RUN], UNKNOWN),
    "a run of no shape": (["withdraw", "x"], UNKNOWN),
    "an answer to no id": (["approve", "x"], UNKNOWN),
    "runs that are not there": (["replay", "/nowhere/runs.jsonl"], INVALID),
    "a pace out of range": (["demo", "--pace", "-1"], INVALID),
    "nobody is there": (["ls", "--url", f"redis://:{CANARY}@127.0.0.1:1"], ERROR_CODES["unavailable"].exit_code),
    "no such socket": (["ls", "--url", "unix:///nowhere/s"], ERROR_CODES["unavailable"].exit_code),
}  # fmt: skip


@pytest.mark.parametrize(("words", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_a_sentence_and_a_code(cli: Cli, words: list[str], code: int) -> None:
    told = cli(*words)
    assert (told.code, told.out) == (code, "")
    assert told.err.startswith("broker: ")
    assert len(told.err.splitlines()) <= 6
    assert CANARY not in told.err
    assert "\x1b" not in told.err


@pytest.mark.parametrize(("words", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_as_json_is_one_object(cli: Cli, words: list[str], code: int) -> None:
    told = cli(*words, "--json")
    assert (told.code, told.out) == (code, "")
    assert told.fault["exit_code"] == code
    assert told.fault["code"] == {INVALID: "invalid", UNKNOWN: "unknown"}.get(code, "unavailable")
    assert isinstance(told.fault["message"], str)
    if code == INVALID:
        assert {"field", "problem", "allowed"} <= told.fault.keys()
    assert CANARY not in told.err


def test_shared_options_may_stand_before_the_command(cli: Cli) -> None:
    assert cli("--json", "--namespace", "A B", "ls").fault["field"] == "namespace"
    assert cli("--url", "foo", "ls", "--json").fault["field"] == "url"


def test_a_wrong_password(cli: Cli, start_server: Callable[..., ServerProcess]) -> None:
    server = start_server({"requirepass": "right"})
    for password in (f":{CANARY}@", ""):
        told = cli("ls", "--url", f"unix://{password}{server.socket}")
        assert (told.code, told.out) == (ERROR_CODES["not_permitted"].exit_code, "")
        assert told.err.startswith("broker: The server does not permit this")
        assert CANARY not in told.err


def test_a_server_that_is_gone(cli: Cli, start_server: Callable[..., ServerProcess]) -> None:
    server = start_server()
    assert cli("ls", "--url", server.url).code == 0
    server.kill()
    told = cli("ls", "--url", server.url)
    assert told.code == ERROR_CODES["unavailable"].exit_code
    assert "server is not available" in told.err


def test_a_server_that_cannot_be_used(cli: Cli, start_server: Callable[..., ServerProcess]) -> None:
    server = start_server({"maxmemory-policy": "allkeys-lru"})
    assert cli("ls", "--url", server.url).code == ERROR_CODES["unsuitable_server"].exit_code


def test_settings_of_the_environment_that_disagree_with_the_namespace(
    cli: Cli, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()  # whoever opens the namespace settles its settings; looking does not
    monkeypatch.setenv("BROKER_KEEP_SETTLED", "7200")
    assert cli("ls").code == ERROR_CODES["wrong_namespace"].exit_code
    monkeypatch.setenv("BROKER_KEEP_SETTLED", "long")
    assert cli("ls", "--json").fault["field"] == "BROKER_KEEP_SETTLED"


def test_a_fault_of_our_own_is_one_sentence_without_what_it_says(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def break_down(*_: Any, **__: Any) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(Inbox, "list", break_down)
    told = cli("ls")
    assert (told.code, told.out) == (1, "")
    assert "went wrong inside the broker (RuntimeError)" in told.err
    assert CANARY not in told.err
    assert cli("ls", "--json").fault["code"] == "unexpected"
    assert main(["ls", "--debug"]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_what_was_answered_is_in_no_log_and_no_error(
    cli: Cli, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    waiting = ask()
    told = cli("respond", waiting, f'{{"secret": "{CANARY}"}}')
    assert told.out.startswith("Not counted: answer.kind is not offered")
    assert CANARY not in told.out + told.err + caplog.text


def test_without_the_extra_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    find = util.find_spec
    monkeypatch.setattr("broker.cli.find_spec", lambda name: None if name == "rich" else find(name))
    assert main(["ls"]) == ERROR_CODES["missing_extra"].exit_code
    assert "pip install 'interrupt-broker[cli]'" in capfd.readouterr().err
    assert main(["ls", "--json"]) == ERROR_CODES["missing_extra"].exit_code
    assert '"code": "missing_extra"' in capfd.readouterr().err


def test_a_reader_that_leaves_is_no_fault(environment: dict[str, str], ask: Ask) -> None:
    for _ in range(3):
        ask()
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "ls"], stdout=writer, stderr=subprocess.PIPE, env=environment
    ) as listing:
        os.close(writer)
        _, err = listing.communicate(timeout=60)
    assert (listing.returncode, err) == (141, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_told_to_end_ends_quietly(
    environment: dict[str, str], number: signal.Signals, code: int
) -> None:
    # A shell starts what it puts in the background with this signal ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts, and never says a word
        url = f"redis://127.0.0.1:{deaf.getsockname()[1]}"
        with subprocess.Popen(
            [sys.executable, "-m", "broker", "ls", "--url", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment,
        ) as waiting:  # fmt: skip
            deaf.settimeout(60)
            connection, _ = deaf.accept()
            with connection:
                wait_until(lambda: connection.recv(1), what="the first byte")
                waiting.send_signal(number)
                out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err) == (code, b"", b"")


def test_words_that_are_no_text_of_the_terminal(process: Cli) -> None:
    told = process("history", "ö-日本", PYTHONIOENCODING="ascii")
    assert (told.code, told.err) == (0, "")


def test_the_program_is_the_module(process: Cli) -> None:
    script = Path(sys.executable).with_name("broker")
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout == process("--help").out
