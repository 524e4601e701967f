"""An arq worker with one function: `arq tests.adapters.job_systems.of_arq.WorkerSettings`."""

import os
from typing import Any, ClassVar

from arq.connections import RedisSettings

from broker import AsyncBroker
from broker.adapters.functions import go_on
from tests.adapters.job_systems.agents import ordinary
from tests.worker.fleet import QUICK


async def go_on_with(_: dict[str, Any], run_id: str) -> None:
    """Goes on with a run."""
    async with AsyncBroker(
        os.environ["TEST_URL"], namespace=os.environ["TEST_NAMESPACE"], settings=QUICK
    ) as broker:
        await go_on(broker, run_id, {"agent": ordinary})


class WorkerSettings:
    """What the worker is told."""

    functions: ClassVar = [go_on_with]
    redis_settings = RedisSettings.from_dsn(os.environ["TEST_JOBS"])
    poll_delay = 0.1
