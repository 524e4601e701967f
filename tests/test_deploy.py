"""What is deployed fits what there is: commands, options, probes, times, metrics; F50: dashboard and alarms."""

import asyncio
import configparser
import json
import os
import re
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import promql_parser
import pytest
import typer
import yaml

from broker import Approve, AsyncBroker, InterruptRecord, Principal
from broker.cli.entry import build
from broker.gateway import GatewaySettings
from broker.gateway.app import ROUTERS
from broker.telemetry.metrics import METRICS, Sort
from broker.testing import RunningServer, await_until

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
MANIFESTS = [
    one
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
SERIES = {
    name: metric
    for metric in METRICS
    for name in (
        [metric.name]
        if metric.sort is not Sort.HISTOGRAM
        else [f"{metric.name}_{end}" for end in ("bucket", "sum", "count")]
    )
}
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
BOARD = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
CLI: Any = typer.main.get_command(build())


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in MANIFESTS if one["kind"] == kind and one["metadata"]["name"] == name]
    assert isinstance(found, dict)
    return found


def pod(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = named("Deployment", name)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


def check_command(words: list[str]) -> dict[str, Any]:
    """The options of a line of `broker`, as the command line itself reads them."""
    command = CLI.commands[words[0]]
    read = command.make_context("broker", list(words[1:]), resilient_parsing=False)
    assert isinstance(read.params, dict)
    return read.params


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_the_manifests_are_valid(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.31", strict=True)


def test_every_command_takes_its_options() -> None:
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"^CMD (\[.*\])$", docker, re.MULTILINE)
    assert found is not None
    assert check_command(json.loads(found[1]))["host"] == "0.0.0.0"  # noqa: S104 - inside a container
    unit = systemd("broker-gateway")["ExecStart"]
    assert check_command(shlex.split(unit)[1:])["port"] == 8700
    _, gateway = pod("broker-gateway")
    assert check_command(gateway["args"])["port"] == gateway["ports"][0]["containerPort"]


def systemd(name: str) -> dict[str, str]:
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / f"{name}.service", encoding="utf-8")
    return dict(unit["Service"])


def test_nobody_is_killed_in_the_middle_of_a_drain() -> None:
    defaults = GatewaySettings()
    whole = defaults.notice_seconds + defaults.drain_seconds
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert int(systemd("broker-gateway")["TimeoutStopSec"]) > whole
    assert int(compose["gateway"]["stop_grace_period"].removesuffix("s")) > whole
    spec, gateway = pod("broker-gateway")
    read = check_command(gateway["args"])
    assert spec["terminationGracePeriodSeconds"] > read["notice"] + read["drain"]
    probe = gateway["readinessProbe"]
    assert read["notice"] > probe["periodSeconds"] * probe["failureThreshold"], (
        "a balancer hears of it in time"
    )
    worker = 25 + 5  # the drain of a worker, and its patience with handlers that do not heed it
    assert pod("broker-worker")[0]["terminationGracePeriodSeconds"] > worker
    assert int(systemd("broker-worker")["TimeoutStopSec"]) > worker
    assert int(compose["worker"]["stop_grace_period"].removesuffix("s")) > worker


def test_the_probes_ask_for_what_there_is() -> None:
    _, gateway = pod("broker-gateway")
    paths = {route.path for router in ROUTERS for route in router.routes if hasattr(route, "path")}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert gateway[probe]["httpGet"]["path"] in paths
    assert gateway["livenessProbe"]["httpGet"]["path"] == "/livez", "an outage of the server restarts nobody"


def test_nothing_runs_as_root_and_passwords_come_from_secrets() -> None:
    keys = named("Secret", "broker")["stringData"]
    for name in ("broker-gateway", "broker-worker"):
        _, container = pod(name)
        context = container["securityContext"]
        assert (context["runAsNonRoot"], context["allowPrivilegeEscalation"]) == (True, False)
        (url,) = [one for one in container["env"] if one["name"] == "BROKER_URL"]
        assert url["valueFrom"]["secretKeyRef"]["key"] in keys
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^USER (\S+)$", docker, re.MULTILINE) == ["10001"]
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE):
        assert all((ROOT / one).exists() for one in sources.split())


@pytest.mark.parametrize("expression", [*QUERIES, *(rule["expr"] for rule in RULES)])
def test_F50_every_expression_reads_and_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    promql_parser.parse(expression)
    asked = set(re.findall(r"\bbroker_\w+", expression))
    assert asked
    assert asked <= SERIES.keys()
    allowed = {"le", "job", "instance"}.union(*(SERIES[one].labels for one in asked))
    for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert set(labels.split(", ")) <= allowed


def test_F50_the_dashboard_shows_every_metric() -> None:
    shown = {SERIES[one].name for query in QUERIES for one in re.findall(r"\bbroker_\w+", query)}
    assert shown == {metric.name for metric in METRICS}


async def test_the_worker_to_begin_with_works(server: RunningServer, namespace: str) -> None:
    """It asks, pays once somebody has approved, tells its metrics, and drains at SIGTERM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"BROKER_URL": server.url, "BROKER_NAMESPACE": namespace, "METRICS_PORT": str(port)}
    async with AsyncBroker(server.url, namespace=namespace, by=Principal.local("ada")) as broker:
        started = await broker.start("payments", {"to": "bob", "cents": 5}, session="s")
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(DEPLOY / "worker.py"), env=os.environ | given
        )
        try:
            (question,) = await await_until(lambda: _asked(broker), 30, what="a question")
            await broker.inbox.answer(question.id, Approve())
            assert (await broker.runs.wait(started.run_id or "", 30)).result == "paid 5 to bob"
            async with httpx.AsyncClient() as anybody:
                told = (await anybody.get(f"http://127.0.0.1:{port}/metrics")).text
            assert 'broker_operations_total{operation="finish",outcome="finished"} 1.0' in told
            process.terminate()
            async with asyncio.timeout(20):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _asked(broker: AsyncBroker) -> tuple[InterruptRecord, ...]:
    return (await broker.inbox.list()).items


def test_RA54_alarms_are_on_ages() -> None:
    """On how long somebody waits, not on how much is done."""
    told = {rule["alert"]: rule["expr"] for rule in RULES}
    assert "broker_backlog_age_seconds" in told["BrokerBacklogOld"]
    assert "broker_oldest_open_seconds" in told["BrokerQuestionOld"]
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in RULES)
