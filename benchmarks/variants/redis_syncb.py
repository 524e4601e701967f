"""The floor: blocking redis-py by hand, up to 256 lifecycles in one round trip."""

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


def _read(client: "redis.Redis", stream: str, most: int) -> list[tuple[bytes, Any]]:
    found: Any = client.xreadgroup(GROUP, "me", {stream: ">"}, count=most, block=BLOCK_MS)
    return list(found[0][1]) if found else []


def pause(job: Job) -> None:
    """Stores a batch of runs and rings for each."""
    client = _connect(job)
    for turn in job.turns():
        pipe = client.pipeline(transaction=False)
        for number in turn:
            store(pipe, number)
        pipe.execute()


def approve(job: Job) -> None:
    """Reads a batch of questions and sends the decisions with the acknowledgement."""
    client = _connect(job)
    while not job.over:
        entries = _read(client, ASKED, job.plan.batch)
        if not entries:
            continue
        pipe = client.pipeline(transaction=False)
        for _, fields in entries:
            number = asked(fields)
            job.answering(number)
            say(pipe, number)
        ids = [entry for entry, _ in entries]
        acknowledge(pipe, ASKED, *ids)
        pipe.execute()


def resume(job: Job) -> None:
    """Claims a batch of runs, loads their states, and removes them when done."""
    client = _connect(job)
    while not job.over:
        entries = _read(client, DECIDED, job.plan.batch)
        if not entries:
            continue
        numbers = [decided(fields) for _, fields in entries]
        pipe = client.pipeline(transaction=False)
        for number in numbers:
            claim(pipe, number, "me")
        found = pipe.execute()
        pipe, done = client.pipeline(transaction=False), 0
        for number, won, state in zip(numbers, found[::2], found[1::2], strict=True):
            if is_whole(won, state, number):
                job.resumed(number)
                forget(pipe, number)
                done += 1
        ids = [entry for entry, _ in entries]
        acknowledge(pipe, DECIDED, *ids)
        pipe.execute()
        job.finished(done)
