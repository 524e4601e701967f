"""Gateways as processes of their own, as they are deployed: started, found ready, killed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from broker.testing import wait_until


@dataclass
class GatewayProcess:
    """One `broker serve`."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Ends it between any two instructions."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def gateway_process(server_url: str, namespace: str, *options: str) -> Generator[GatewayProcess]:
    """A gateway that is ready, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "broker", "serve", "--port", str(port), *options]
    environment = dict(os.environ, BROKER_URL=server_url, BROKER_NAMESPACE=namespace)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or _is_ready(url), timeout=60)
            yield GatewayProcess(url, process)
        finally:
            process.kill()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
