"""A worker process with a plain handler that never returns."""

import sys
import threading
from typing import Any

from broker import Worker
from tests.worker.fleet import QUICK, report, report_logs


def stuck(run: Any) -> None:
    report(f"begins {run.id}")
    threading.Event().wait()


def main() -> None:
    report_logs()
    url, namespace, _ = sys.argv[1:]
    worker = Worker(url, namespace=namespace, settings=QUICK)
    worker.add("stuck", stuck)
    worker.run()


if __name__ == "__main__":
    main()
