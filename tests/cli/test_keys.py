"""`keys` and `signing`: who may use the gateway, and what its tokens are signed with; `serve` with a provider."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from broker import Broker, Untrusted
from broker.testing import await_until
from tests.cli.conftest import Cli
from tests.gateway.issuer import AUDIENCE, issuing


def test_F42_a_key_is_made_rotated_and_revoked(cli: Cli, broker: Broker) -> None:
    made = cli("keys", "create", "ada", "--role", "viewer", "--json").json
    old, text = made["key"]["id"], made["text"]
    rotated = cli("keys", "rotate", old, "--overlap", "1h")
    assert rotated.code == 0
    new = rotated.out.splitlines()[-1]
    assert new.startswith("brk_")
    assert broker.keys.find(text) is not None
    found = broker.keys.find(new)
    assert found is not None
    assert found.replaces == old
    listed = cli("keys", "list").out
    assert "replaced, until" in listed
    assert new not in listed
    assert cli("keys", "rotate", old).code == 2
    assert cli("keys", "revoke", old).code == 0
    assert broker.keys.find(text) is None
    at_once = cli("keys", "rotate", found.id, "--overlap", "0", "--json").json
    assert broker.keys.find(new) is None
    assert broker.keys.find(at_once["text"]) is not None


def test_F42_signing_keys_are_rotated_and_dropped(cli: Cli, broker: Broker) -> None:
    assert "no signing key yet" in cli("signing", "list").out
    text = broker.signing.sign("session", {}, timedelta(hours=1))
    told = cli("signing", "rotate")
    assert told.out == "Signing key 2 signs from now on.\n"
    rows = [line.split() for line in cli("signing", "list").out.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows] == [("1", "verifies"), ("2", "signs")]
    assert cli("signing", "drop", "2").code == 2
    assert cli("signing", "drop", "9").code == 4
    assert [set(one) for one in cli("signing", "list", "--json").json] == [{"number", "created_at_ms"}] * 2
    assert broker.signing.verify("session", text).key == 1
    assert cli("signing", "drop", "1").code == 0
    with pytest.raises(Untrusted):
        broker.signing.verify("session", text)


@contextmanager
def served(environment: dict[str, str]) -> Iterator[str]:
    """`broker serve` as a process; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "broker", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def test_a_provider_is_named_by_the_environment(environment: dict[str, str], tmp_path: Path) -> None:
    with issuing(tmp_path) as issuer:
        provider = {
            "BROKER_JWT_ISSUER": issuer.url, "BROKER_JWT_AUDIENCE": AUDIENCE, "BROKER_JWT_KEYS": issuer.jwks_url,
            "BROKER_JWT_ROLES": "watchers=viewer approvers=reviewer",
        }  # fmt: skip
        with served(environment | provider) as url:
            async with httpx.AsyncClient(base_url=url) as client:

                async def serves() -> bool:
                    try:
                        return (await client.get("/livez")).status_code == 200
                    except httpx.TransportError:
                        return False

                await await_until(serves, timeout=30)
                for groups, code in (("watchers", 200), ("approvers", 200), ("others", 403)):
                    shown = {"Authorization": f"Bearer {issuer.token(groups=groups)}"}
                    assert (await client.get("/v1/interrupts", headers=shown)).status_code == code


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--jwt-issuer", "https://id.example"), "--jwt-audience"),
        (("--jwt-role", "a=viewer"), "--jwt-issuer"),
        (
            ("--jwt-issuer", "x", "--jwt-audience", "y", "--jwt-keys", "https://z", "--jwt-role", "a=king"),
            "--jwt-role",
        ),
        (("--jwt-issuer", "x", "--jwt-audience", "y", "--jwt-keys", "http://z.example"), "jwks_url"),
    ],
)
def test_half_a_provider_is_refused_before_anything_is_served(
    cli: Cli, words: tuple[str, ...], field: str
) -> None:
    told = cli("serve", *words, "--json")
    assert told.code == 2
    assert told.fault["field"] == field
