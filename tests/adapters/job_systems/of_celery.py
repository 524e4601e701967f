"""A Celery application with one task: `celery -A tests.adapters.job_systems.of_celery worker`."""

import os

from celery import Celery  # type: ignore[import-not-found, unused-ignore]

from broker import Broker
from broker.adapters.functions import go_on_blocking
from tests.adapters.job_systems.agents import blocking
from tests.worker.fleet import QUICK

app = Celery("jobs", broker=os.environ["TEST_JOBS"])
app.conf.task_ignore_result = True


@app.task(name="go_on")  # type: ignore[untyped-decorator, unused-ignore]
def task(run_id: str) -> None:
    """Goes on with a run."""
    with Broker(os.environ["TEST_URL"], namespace=os.environ["TEST_NAMESPACE"], settings=QUICK) as broker:
        go_on_blocking(broker, run_id, {"agent": blocking})
