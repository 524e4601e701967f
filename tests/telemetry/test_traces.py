"""One trace from the question over the answer to the run that goes on, each in a process of its own."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from broker import Action, Approve, AsyncBroker, Interrupt, Principal, Reject
from broker.telemetry import Together
from broker.telemetry.otel import OpenTelemetry
from broker.testing import RunningServer

from .traced import CANARY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        yield broker


class Story:
    """Processes one after the other, and the spans of each."""

    def __init__(self, url: str, namespace: str, folder: Path) -> None:
        self._told, self._folder = (url, namespace), folder

    async def act(self, role: str, *rest: str) -> list[dict[str, Any]]:
        path = self._folder / f"{len(list(self._folder.iterdir()))}.jsonl"
        command = [sys.executable, "-m", "tests.telemetry.traced", role, *self._told, str(path), *rest]
        await asyncio.to_thread(subprocess.run, command, check=True, cwd=ROOT, timeout=60)
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def named(spans: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (only,) = [one for one in spans if one["name"] == name]
    return only


async def test_one_trace_over_three_processes(
    server: RunningServer, namespace: str, tmp_path: Path, broker: AsyncBroker
) -> None:
    story = Story(server.url, namespace, tmp_path)
    run_id = (await broker.start("shop", session="s")).run_id or ""
    asked = await story.act("worker")
    (question,) = (await broker.inbox.list()).items
    assert question.interrupt.traceparent is not None
    answered = await story.act("answer", question.id)
    resumed = await story.act("worker")
    assert (await broker.runs.get(run_id)).result == CANARY

    first, pause = named(asked, "broker.run shop"), named(asked, "broker.suspend")
    answer, second = named(answered, "broker.answer"), named(resumed, "broker.run shop")
    traces = {one["context"]["trace_id"] for one in (first, pause, answer, second)}
    assert len(traces) == 1
    assert first["parent_id"] is None
    assert pause["parent_id"] == first["context"]["span_id"]
    assert answer["parent_id"] == second["parent_id"] == pause["context"]["span_id"]
    assert answer["attributes"] | {"broker.run": run_id, "broker.outcome": "accepted"} == answer["attributes"]
    assert answer["attributes"]["broker.interrupts"] == [question.id]
    assert [one["name"] for one in second["events"]] == ["broker.finish"]
    assert CANARY not in json.dumps([asked, answered, resumed])


async def test_a_question_keeps_the_trace_it_brings(server: RunningServer, namespace: str) -> None:
    """Whether somebody traces or nobody: what the caller wrote stands."""
    mine = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    question = Interrupt.approval(Action(tool="t", arguments={}), "c", traceparent=mine)
    async with AsyncBroker(
        server.url, namespace=namespace, observer=OpenTelemetry(tracer_provider=TracerProvider())
    ) as b:
        paused = await b.suspend("shop", question, session="s")
        assert (await b.inbox.get(paused.interrupt_ids[0])).interrupt.traceparent == mine


async def test_without_telemetry_nothing_is_written(broker: AsyncBroker) -> None:
    paused = await broker.suspend("shop", Interrupt.question("?"), session="s")
    assert (await broker.inbox.get(paused.interrupt_ids[0])).interrupt.traceparent is None


async def test_the_same_pause_in_another_trace_is_the_same_pause(
    server: RunningServer, namespace: str
) -> None:
    """A repeat comes in another trace, and is a repeat all the same."""
    observer = OpenTelemetry(tracer_provider=TracerProvider())
    async with AsyncBroker(server.url, namespace=namespace, observer=observer) as b:
        first = await b.suspend("shop", Interrupt.question("?"), session="s", key="k")
        again = await b.suspend("shop", Interrupt.question("?"), session="s", key="k")
        assert (again.code, again.interrupt_ids) == ("replayed", first.interrupt_ids)


async def test_a_trace_that_cannot_be_read_harms_nobody(server: RunningServer, namespace: str) -> None:
    question = Interrupt.approval(Action(tool="t", arguments={}), "c", traceparent="no trace at all")
    observer = OpenTelemetry(tracer_provider=TracerProvider())
    async with AsyncBroker(server.url, namespace=namespace, observer=observer, by=Principal.local("me")) as b:
        run_id = (paused := await b.suspend("shop", question, session="s")).run_id or ""
        assert (await b.inbox.answer(paused.interrupt_ids[0], Approve())).ok
        async with b.take(run_id) as run:
            await run.finish()


async def test_F50_the_same_counts_go_to_an_opentelemetry_meter(
    server: RunningServer, namespace: str
) -> None:
    reader = InMemoryMetricReader()
    observer = Together(None, OpenTelemetry(meter_provider=MeterProvider([reader])))
    by = Principal.local("me")
    async with AsyncBroker(server.url, namespace=namespace, observer=observer, by=by) as b:
        paused = await b.suspend("shop", Interrupt.question("?"), session="s")
        await b.inbox.answer(paused.interrupt_ids[0], Reject(reason=CANARY))
    found = json.loads(reader.get_metrics_data().to_json())  # type: ignore[union-attr]
    told = {
        metric["name"]: metric["data"]["data_points"]
        for scope in found["resource_metrics"][0]["scope_metrics"]
        for metric in scope["metrics"]
    }
    (answers,) = told["broker.answers"]
    assert (answers["attributes"], answers["value"]) == ({"outcome": "accepted"}, 1)
    assert told["broker.decision"][0]["count"] == 1
    assert CANARY not in json.dumps(found)
