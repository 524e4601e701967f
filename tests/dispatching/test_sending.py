"""An HTTP service and Kubernetes. Celery and arq are tried with their own packages in tests/adapters."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Broker, InvalidInput, RunState
from broker.adapters.functions import Dispatcher, Job, gated, go_on_blocking, job_manifest, to_http
from broker.testing import RunningServer
from tests.worker.fleet import QUICK, ended, run_when

JOB = Job("run_0001abc", "s", "greeter", "agents", None, "run_0001abc-00ff00ff00ff00ff", 1)
TEMPLATE: dict[str, Any] = {
    "metadata": {"generateName": "agent-", "labels": {"team": "a"}},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {"name": "agent", "image": "agents:1", "env": [{"name": "BROKER_RUN_ID", "value": "?"}]}
                ]
            }
        }
    },
}

Asked = list[tuple[dict[str, str], Any]]


@contextmanager
def service(statuses: list[int], begin: Callable[[str], None]) -> Generator[tuple[str, Asked]]:
    """An HTTP service on a port of its own that answers with these statuses, the last for good; a job for each 202."""
    asked: Asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((dict(self.headers), body))
            status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
            if status == 202:
                threading.Thread(target=begin, args=(body["run_id"],), daemon=True).start()
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/runs", asked
        server.shutdown()
        thread.join()


@gated
def publish(text: str) -> str:
    return f"published {text}"


async def test_an_HTTP_service_goes_on_with_runs(
    broker: AsyncBroker, dispatch: Callable[..., Dispatcher], server: RunningServer, namespace: str
) -> None:
    """It refuses the first post, and redirects the second: the run comes back until it accepts."""

    def begin(run_id: str) -> None:
        with Broker(server.url, namespace=namespace, settings=QUICK) as mine:
            go_on_blocking(mine, run_id, {"author": lambda _: publish("a page")})

    with service([503, 303, 202], begin) as (url, asked):
        dispatch(to=to_http(url, headers={"Authorization": "Bearer t"}), agents=["author"])
        started = await broker.start("author", session="s")
        paused = await run_when(broker, started.run_id, RunState.WAITING)
        assert (await broker.inbox.answer(paused.interrupt_ids[0], Approve())).ok
        assert (await ended(broker, started.run_id)).result == "published a page"
    assert [body["run_id"] for _, body in asked] == [started.run_id] * 4
    headers, body = asked[0]
    assert body == {"run_id": started.run_id, "agent": "author", "queue": "agents", "build": None}
    assert headers["Authorization"] == "Bearer t"
    keys = [headers["Idempotency-Key"] for headers, _ in asked]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/", "host/runs", ""])
def test_only_http_is_posted_to(url: str) -> None:
    with pytest.raises(InvalidInput, match="url cannot be posted to"):
        to_http(url)


def test_a_manifest_is_the_template_with_a_name_and_the_run() -> None:
    made: Any = job_manifest(JOB, TEMPLATE)
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    assert made["metadata"] == {
        "name": "run-0001abc-00ff00ff00ff00ff",
        "labels": {"team": "a", "interrupt-broker/run-id": "run_0001abc"},
    }
    assert made["spec"]["backoffLimit"] == 0
    pod = made["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["containers"][0]["env"] == [{"name": "BROKER_RUN_ID", "value": "run_0001abc"}]
    assert TEMPLATE["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "?"


async def test_a_real_jobs_name_is_one_that_kubernetes_takes(
    broker: AsyncBroker, dispatch: Callable[..., Dispatcher]
) -> None:
    """RFC 1123: at most 63 of small letters, digits and hyphens; a label's value may be 63 long."""
    jobs: asyncio.Queue[Job] = asyncio.Queue()
    dispatch(to=jobs.put, agents=["greeter"])
    await broker.start("greeter", session="s")
    async with asyncio.timeout(20):
        made: Any = job_manifest(await jobs.get(), TEMPLATE)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", made["metadata"]["name"])
    assert len(made["metadata"]["labels"]["interrupt-broker/run-id"]) <= 63


@pytest.mark.parametrize("template", [{}, {"spec": {"template": {"spec": {"containers": []}}}}, {"spec": []}])
def test_a_template_without_containers_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"template has no spec\.template\.spec\.containers"):
        job_manifest(JOB, template)
