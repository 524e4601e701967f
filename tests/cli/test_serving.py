"""`up` and `down`: the embedded server."""

from collections.abc import Iterator

import pytest

from broker import Broker, embedded
from tests.cli.conftest import Cli


@pytest.fixture
def no_url(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line without BROKER_URL, with an embedded server of its own that is gone afterwards."""
    monkeypatch.delenv("BROKER_URL")
    yield cli
    embedded.down()


def test_up_twice_and_down_twice(no_url: Cli) -> None:
    first = no_url("up")
    assert first.code == 0
    assert first.out.startswith("The server is up.\n")
    assert no_url("up").out.startswith("The server was up already.\n")
    assert no_url("down").out == "The server is down; its data stay.\n"
    assert no_url("down").out == "The server was not up.\n"


def test_up_and_down_as_json(no_url: Cli, environment: dict[str, str]) -> None:
    told = no_url("up", "--json").json
    assert list(told) == ["home", "address", "pid", "family", "version", "since_ms", "started"]
    assert (told["home"], told["started"]) == (environment["BROKER_HOME"], True)
    assert "@" not in told["address"]
    assert no_url("up", "--json").json["pid"] == told["pid"]
    assert no_url("down", "--json").json == {"stopped": True, "home": environment["BROKER_HOME"]}


def test_the_password_is_told_only_when_asked_for(no_url: Cli, environment: dict[str, str]) -> None:
    url = no_url("up", "--show-url").out.strip()
    assert no_url("up", "--show-url", "--json").json == {"url": url}
    with Broker(url, namespace=environment["BROKER_NAMESPACE"]) as broker:
        assert broker.fleet().open == 0
    password = url.split("@", maxsplit=1)[0].rpartition(":")[2]
    told = [no_url(*words) for words in (["up"], ["up", "--json"], ["status"], ["status", "--json"])]
    assert [one for one in told if password in one.out + one.err] == []


def test_data_are_there_after_a_restart(no_url: Cli, environment: dict[str, str]) -> None:
    url = no_url("up", "--show-url").out.strip()
    with Broker(url, namespace=environment["BROKER_NAMESPACE"]) as broker:
        started = broker.start("desk", None, session="s")
    no_url("down")
    assert started.run_id is not None
    assert no_url("show", started.run_id, "--json").json["state"] == "ready"


def test_the_state_starts_no_server(no_url: Cli) -> None:
    told = no_url("status")
    assert told.code == 7
    assert "`broker up` starts it" in " ".join(told.err.split())
    assert not embedded.is_up()


def test_other_commands_start_it(no_url: Cli) -> None:
    assert no_url("ls").out == "Nothing waits for an answer.\n"
    assert embedded.is_up()


def test_a_named_server_is_not_ours_to_start_or_stop(no_url: Cli) -> None:
    assert [no_url(word, "--url", "redis://127.0.0.1:1").code for word in ("up", "down")] == [2, 2]
    assert not embedded.is_up()
