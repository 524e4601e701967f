"""LangGraph with the saver for Valkey of langgraph-checkpoint-aws, which needs no module of the server."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from langgraph_checkpoint_aws.checkpoint.valkey import AsyncValkeySaver

from benchmarks.job import Job
from benchmarks.variants.redis_syncb import approve

from .langgraph_graph import make_groups, pause_with, resume_with

__all__ = ["approve", "pause", "prepare", "resume"]

CONNECTIONS = 256
"""Its pool refuses when it is empty, and a step takes more than one connection."""


def _saver(url: str) -> AbstractAsyncContextManager[Any]:
    saver: AbstractAsyncContextManager[Any] = AsyncValkeySaver.from_conn_string(
        url.replace("redis://", "valkey://"), pool_size=CONNECTIONS
    )
    return saver


def prepare(url: str) -> None:
    """Makes the streams; the saver needs nothing."""
    make_groups(url)


def pause(job: Job) -> None:
    """Runs graphs until they interrupt."""
    pause_with(job, _saver(job.url))


def resume(job: Job) -> None:
    """Resumes them."""
    resume_with(job, _saver(job.url))
