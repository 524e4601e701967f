"""How a run is handed to Celery, to arq, to an HTTP service or to Kubernetes: none of them is imported here."""

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from ...core.limits import JSON
from ...errors import InvalidInput
from .dispatching import Job

SECONDS: Final = 30.0


class _Task(Protocol):
    """As much of a Celery task as is needed."""

    def apply_async(self, args: tuple[Any, ...], **options: Any) -> Any:
        """Sends it."""
        ...


class _Pool(Protocol):
    """As much of an arq connection as is needed."""

    def enqueue_job(self, function: str, *args: Any, **options: Any) -> Awaitable[Any]:
        """Puts a job into the queue."""
        ...


def to_celery(task: _Task, **options: Any) -> Callable[[Job], None]:
    """Hands runs to a Celery task of one argument, the run's id; `options` are those of `apply_async`.

    The task needs no result, no retries and no late acknowledgement: a run whose task was lost is handed out again.
    """

    def send(job: Job) -> None:
        task.apply_async((job.run_id,), task_id=job.key, **options)

    return send


def to_arq(pool: _Pool, function: str, **options: Any) -> Callable[[Job], Awaitable[None]]:
    """Hands runs to an arq function of the context and the run's id; `options` are those of `enqueue_job`."""

    async def send(job: Job) -> None:
        await pool.enqueue_job(function, job.run_id, _job_id=job.key, **options)

    return send


def to_http(
    url: str, *, headers: Mapping[str, str] | None = None, seconds: float = SECONDS
) -> Callable[[Job], None]:
    """Posts `{"run_id", "agent", "queue", "build"}` as JSON, the job's key as `Idempotency-Key`.

    Whatever status begins with 2 says that a job was made, and better at once than when it is done; any other status,
    a redirection too, says that none was. Raises `InvalidInput` where `url` is not http or https.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidInput("url", "cannot be posted to", "one that begins with http:// or https://")
    opener = urllib.request.build_opener(_NoRedirect)

    def send(job: Job) -> None:
        body = {"run_id": job.run_id, "agent": job.agent, "queue": job.queue, "build": job.build}
        request = urllib.request.Request(  # noqa: S310 - its scheme was looked at
            url, json.dumps(body).encode(), method="POST",
            headers={**(headers or {}), "Content-Type": "application/json", "Idempotency-Key": job.key},
        )  # fmt: skip
        try:
            opener.open(request, timeout=seconds).close()
        except urllib.error.HTTPError as refused:
            refused.close()  # it holds the connection
            raise

    return send


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A post that is sent elsewhere would become a get, and its headers may hold a secret."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the status is an error."""


def job_manifest(job: Job, template: Mapping[str, Any]) -> dict[str, JSON]:
    """The Kubernetes Job for a run: `template` with a name of its own, and `BROKER_RUN_ID` in each container.

    Pods are not started again (`backoffLimit` 0, `restartPolicy` Never) unless the template says so: the run is
    handed out again by itself. Create it with the client you have, such as
    `to=lambda job: batch.create_namespaced_job("agents", job_manifest(job, TEMPLATE))`. Raises `InvalidInput` where
    the template has no containers. The template stays as it is.
    """
    made: dict[str, Any] = copy.deepcopy(dict(template))
    made = {"apiVersion": "batch/v1", "kind": "Job", **made}
    try:
        pod = made["spec"]["template"]["spec"]
        containers = [*pod["containers"], *pod.get("initContainers", [])]
    except (KeyError, TypeError):
        pod, containers = {}, []
    if not containers:
        raise InvalidInput("template", "has no spec.template.spec.containers", "the manifest of a Job")
    metadata = made.setdefault("metadata", {})
    metadata.pop("generateName", None)
    metadata["name"] = job.key.replace("_", "-")
    metadata.setdefault("labels", {})["interrupt-broker/run-id"] = job.run_id
    made["spec"].setdefault("backoffLimit", 0)
    pod.setdefault("restartPolicy", "Never")
    for one in containers:
        one["env"] = [
            *(each for each in one.get("env") or () if each.get("name") != "BROKER_RUN_ID"),
            {"name": "BROKER_RUN_ID", "value": job.run_id},
        ]
    return made
