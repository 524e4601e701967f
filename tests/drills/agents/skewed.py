"""A worker of the drills whose clock is wrong: `python -m tests.drills.agents.skewed URL NAMESPACE OPTIONS`.

`skews` has the seconds by which it is wrong, one after the other, a fifth of a second each: it jumps ahead and back.
Only the standard library is imported before the clock is wrong.
"""

import datetime as dt
import json
import runpy
import sys
import time
from typing import Any

STEP = 0.2


def falsify(skews: list[float]) -> None:
    """From now on whoever asks this process for the time of day is told another."""
    real, seconds, nanoseconds = dt.datetime, time.time, time.time_ns

    def skew() -> float:
        return skews[int(time.monotonic() / STEP) % len(skews)]

    class Kind(type):
        def __instancecheck__(cls, thing: object) -> bool:
            return isinstance(thing, real)

    class Wrong(dt.datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return real.now(tz) + dt.timedelta(seconds=skew())

        @classmethod
        def utcnow(cls) -> Any:
            return real.now(dt.UTC).replace(tzinfo=None) + dt.timedelta(seconds=skew())

    time.time = lambda: seconds() + skew()
    time.time_ns = lambda: nanoseconds() + int(skew() * 1e9)
    dt.datetime = Wrong  # type: ignore[misc]


def main() -> None:
    options = json.loads(sys.argv[3])
    falsify(options.pop("skews"))
    sys.argv[3] = json.dumps(options)
    told = f"clock {time.time()} {dt.datetime.now(dt.UTC).timestamp()}\n"
    sys.stdout.write(told)
    sys.stdout.flush()
    runpy.run_module("tests.drills.agents.working", run_name="__main__")


if __name__ == "__main__":
    main()
