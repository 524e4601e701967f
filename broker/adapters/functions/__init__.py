"""Plain functions with the job system that a team has: Celery, arq, Kubernetes, an HTTP service, no broker worker.

A `Dispatcher` hands each ready run to that system as a small job, the run's id. The job calls `go_on`, which takes the
run under its lease and does what a worker does with it. Jobs that come twice or too late find nothing to do, and a run
whose job was lost is handed out again. `gated` and `long_running` make functions that are called like any other.
"""

from .calling import gated, long_running, working_on
from .dispatching import Dispatcher, Job, Send
from .jobs import go_on, go_on_blocking
from .sending import job_manifest, to_arq, to_celery, to_http

__all__ = [
    "Dispatcher",
    "Job",
    "Send",
    "gated",
    "go_on",
    "go_on_blocking",
    "job_manifest",
    "long_running",
    "to_arq",
    "to_celery",
    "to_http",
    "working_on",
]
