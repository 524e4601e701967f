"""The Compose file starts the same kind of server as everything else of ours."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.embedded import SERVER_FLAGS

FILE = Path(__file__).resolve().parents[1] / "docker-compose.yml"


@pytest.fixture
def compose() -> dict[str, Any]:
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.fixture
def service(compose: dict[str, Any]) -> dict[str, Any]:
    found = compose["services"]["valkey"]
    assert isinstance(found, dict)
    return found


def test_its_flags_are_those_of_our_own_servers(service: dict[str, Any]) -> None:
    program, *words = service["command"]
    flags = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    assert program in {"redis-server", "valkey-server"}
    assert flags == dict(SERVER_FLAGS)


def test_it_keeps_its_data_and_says_when_it_is_ready(
    compose: dict[str, Any], service: dict[str, Any]
) -> None:
    (volume,) = service["volumes"]
    name, target = volume.split(":")
    assert target == "/data"
    assert list(compose["volumes"]) == [name]
    assert "ping" in " ".join(service["healthcheck"]["test"])


def test_only_this_machine_reaches_it(compose: dict[str, Any]) -> None:
    ports = [port for one in compose["services"].values() for port in one.get("ports", ())]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_gateway_and_worker_come_only_when_asked_for(compose: dict[str, Any]) -> None:
    """`docker compose up` goes on starting a server and nothing that has to be built."""
    services = compose["services"]
    assert {name for name, one in services.items() if "profiles" not in one} == {"valkey"}
    for name in ("gateway", "worker"):
        assert services[name]["profiles"] == ["fleet"]
        assert services[name]["depends_on"] == {"valkey": {"condition": "service_healthy"}}
        assert services[name]["environment"]["BROKER_URL"] == "redis://valkey:6379"
    (mount,) = services["worker"]["volumes"]
    assert (FILE.parent / mount.split(":")[0]).is_file()


def test_old_tools_read_it(compose: dict[str, Any]) -> None:
    assert "name" not in compose  # refused by Compose 1; COMPOSE_PROJECT_NAME does the same
    assert "version" not in compose  # a warning in Compose 2
