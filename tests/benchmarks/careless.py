"""A way of lifecycles with two faults on purpose: it goes on with one run twice, and with another one never."""

from benchmarks.job import Job
from benchmarks.variants.redis_syncb import approve, pause, prepare
from benchmarks.variants.redis_syncb import resume as resume_each

__all__ = ["approve", "pause", "prepare", "resume"]

TWICE = 5
NEVER = 7


class _Careless(Job):
    def resumed(self, number: int) -> None:
        for _ in range({TWICE: 2, NEVER: 0}.get(number, 1)):
            super().resumed(number)


def resume(job: Job) -> None:
    job.__class__ = _Careless
    resume_each(job)
