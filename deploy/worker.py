"""A worker to begin with: its agent asks before it pays. Its metrics are at port 9100; SIGTERM drains it."""

import os
from typing import Any

from prometheus_client import REGISTRY, start_http_server

from broker import Run, Worker, gated
from broker.telemetry.prometheus import Counting, PrometheusMeter

worker = Worker(
    namespace=os.environ.get("BROKER_NAMESPACE", "default"), observer=Counting(PrometheusMeter(REGISTRY))
)


@gated
def pay(to: str, cents: int) -> str:
    """Pays somebody."""
    return f"paid {cents} to {to}"


@worker.agent("payments")
async def payments(run: Run[Any]) -> Any:
    """Pays what the run was started with, once somebody has approved it."""
    return await run.call(pay, run.input, call_id="pay")


if __name__ == "__main__":
    start_http_server(int(os.environ.get("METRICS_PORT", "9100")))
    worker.run()
