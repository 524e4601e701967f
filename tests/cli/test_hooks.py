"""`hooks`: who is told of what happens."""

from broker import Broker
from tests.cli.conftest import Cli


def test_F38_a_webhook_is_made_rotated_and_deleted(cli: Cli, broker: Broker) -> None:
    assert "no webhook yet" in cli("hooks", "list").out
    made = cli("hooks", "create", "https://a.example/in", "--type", "run.dead", "--json").json
    one, secret = made["hook"]["id"], made["secret"]
    assert secret.startswith("whsec_")
    rotated = cli("hooks", "rotate", one, "--overlap", "1h")
    assert rotated.out.splitlines()[-1].startswith("whsec_")
    listed = cli("hooks", "list").out
    assert one in listed
    assert "whsec_" not in listed
    assert cli("hooks", "lost", one).out == "Nothing was given up.\n"
    assert cli("hooks", "replay", one, "--json").json == {"replayed": 0}
    assert cli("hooks", "enable", one).code == 0
    assert cli("hooks", "delete", one).code == 0
    assert broker.hooks.list() == ()


def test_P12_what_is_none(cli: Cli) -> None:
    assert cli("hooks", "create", "ftp://a.example").code == 2
    assert cli("hooks", "create", "https://a.example", "--type", "sold").code == 2
    assert cli("hooks", "rotate", "hook_0").code == 4
    assert cli("hooks", "send", "--allow", "everywhere").code == 2
