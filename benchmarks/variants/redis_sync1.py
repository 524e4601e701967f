"""Blocking redis-py by hand, one lifecycle at a time: a round trip for each step, nothing batched."""

from typing import Any

import redis

from benchmarks.job import Job

from .redis_keys import (
    ASKED,
    BLOCK_MS,
    DECIDED,
    GROUP,
    acknowledge,
    asked,
    claim,
    decided,
    facts,
    forget,
    is_whole,
    prepare,
    say,
    store,
)

__all__ = ["approve", "facts", "pause", "prepare", "resume"]


def _connect(job: Job) -> "redis.Redis":
    client = redis.Redis.from_url(job.url)
    client.ping()
    job.ready()
    return client


def _read(client: "redis.Redis", stream: str) -> tuple[bytes, Any] | None:
    found: Any = client.xreadgroup(GROUP, "me", {stream: ">"}, count=1, block=BLOCK_MS)
    return found[0][1][0] if found else None


def pause(job: Job) -> None:
    """Stores a run and rings for it."""
    client = _connect(job)
    for turn in job.turns():
        for number in turn:
            pipe = client.pipeline(transaction=False)
            store(pipe, number)
            pipe.execute()


def approve(job: Job) -> None:
    """Reads a question and sends the decision with the acknowledgement."""
    client = _connect(job)
    while not job.over:
        if (found := _read(client, ASKED)) is None:
            continue
        entry, fields = found
        number = asked(fields)
        job.answering(number)
        pipe = client.pipeline(transaction=False)
        say(pipe, number)
        acknowledge(pipe, ASKED, entry)
        pipe.execute()


def resume(job: Job) -> None:
    """Claims and loads a run in one round trip, removes it in another."""
    client = _connect(job)
    while not job.over:
        if (found := _read(client, DECIDED)) is None:
            continue
        entry, fields = found
        number = decided(fields)
        pipe = client.pipeline(transaction=False)
        claim(pipe, number, "me")
        won, state = pipe.execute()
        pipe = client.pipeline(transaction=False)
        if whole := is_whole(won, state, number):
            job.resumed(number)
            forget(pipe, number)
        acknowledge(pipe, DECIDED, entry)
        pipe.execute()
        job.finished(int(whole))
