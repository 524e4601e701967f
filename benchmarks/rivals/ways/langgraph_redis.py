"""LangGraph with the saver of langgraph-checkpoint-redis, which needs the JSON and search modules of the server.

The shallow one: it keeps the last checkpoint of a run only, which is all that a resume needs, and is the faster.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.redis.ashallow import AsyncShallowRedisSaver

from benchmarks.job import Job
from benchmarks.variants.redis_syncb import approve

from .langgraph_graph import make_groups, pause_with, resume_with

__all__ = ["approve", "pause", "prepare", "resume"]


@asynccontextmanager
async def _saver(url: str) -> AsyncIterator[Any]:
    async with AsyncShallowRedisSaver.from_conn_string(url) as saver:
        await saver.asetup()
        yield saver


def prepare(url: str) -> None:
    """Makes the streams and the indexes."""

    async def main() -> None:
        async with _saver(url):
            pass

    make_groups(url)
    asyncio.run(main())


def pause(job: Job) -> None:
    """Runs graphs until they interrupt."""
    pause_with(job, _saver(job.url))


def resume(job: Job) -> None:
    """Resumes them."""
    resume_with(job, _saver(job.url))
