"""A process that forks with an open broker: `python -m tests.worker.agents.forking URL NAMESPACE`.

Both halves go on with it.
"""

import os
import sys

from broker import Broker
from tests.worker.fleet import report

CALLS = 100


def work(broker: Broker, half: str) -> bool:
    """Whether every call of this half got its own answer."""
    started = [broker.start("a", {"n": n}, session=f"{half}-{n}") for n in range(CALLS)]
    return all(broker.runs.get(one.run_id).session_id == f"{half}-{n}" for n, one in enumerate(started))


def main() -> None:
    url, namespace = sys.argv[1:3]
    with Broker(url, namespace=namespace) as broker:
        broker.fleet()
        child = os.fork()
        if child == 0:
            fine = False
            try:
                fine = work(broker, "child")
            finally:
                os._exit(0 if fine else 1)
        fine = work(broker, "parent")
        _, status = os.waitpid(child, 0)
        report(f"parent {fine} child {os.waitstatus_to_exitcode(status) == 0}")


if __name__ == "__main__":
    main()
