"""LangGraph with the saver of langgraph-checkpoint-postgres; the notification on a server of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.job import Job
from benchmarks.variants import redis_syncb

from .langgraph_graph import make_groups, pause_with, resume_with

LEAST: Final = 4
MOST: Final = 16
OPTIONS: Final = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
"""Those that the saver asks for."""


@asynccontextmanager
async def _saver(url: str) -> AsyncIterator[Any]:
    async with AsyncConnectionPool(url, min_size=LEAST, max_size=MOST, kwargs=OPTIONS, open=False) as pool:
        yield AsyncPostgresSaver(pool)


def _parted(job: Job) -> str:
    """The store's URL; the job is left with that of the server for notification."""
    store, job.url = job.url.split()
    return store


def prepare(url: str) -> None:
    """Makes the streams and the tables."""
    store, bells = url.split()

    async def main() -> None:
        async with _saver(store) as saver:
            await saver.setup()

    make_groups(bells)
    asyncio.run(main())


def pause(job: Job) -> None:
    """Runs graphs until they interrupt."""
    store = _parted(job)
    pause_with(job, _saver(store))


def approve(job: Job) -> None:
    """Answers as the others do."""
    _parted(job)
    redis_syncb.approve(job)


def resume(job: Job) -> None:
    """Resumes them."""
    store = _parted(job)
    resume_with(job, _saver(store))
