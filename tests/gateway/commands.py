"""Gateways as processes of their own: `broker serve`, and any program that serves one."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import httpx

from broker.testing import await_until

ROOT = Path(__file__).resolve().parents[2]


class Gateway:
    """A process that serves, and what it wrote to standard error."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, told: Path) -> None:
        self.process, self.port, self.told = process, port, told
        self.url = f"http://127.0.0.1:{port}"

    async def state(self) -> str:
        """What `/readyz` says; `gone` where nobody listens."""
        try:
            async with httpx.AsyncClient(base_url=self.url, timeout=5) as anybody:
                return str((await anybody.get("/readyz")).json()["state"])
        except httpx.TransportError:
            return "gone"

    def lines(self) -> list[str]:
        return self.told.read_text(encoding="utf-8").splitlines()

    def terminate(self) -> float:
        """Sends SIGTERM; when that was."""
        self.process.send_signal(signal.SIGTERM)
        return monotonic()

    async def ended(self, timeout: float) -> int:
        async with asyncio.timeout(timeout):
            return await self.process.wait()


@asynccontextmanager
async def started(url: str, namespace: str, folder: Path, *words: str) -> AsyncGenerator[Gateway]:
    """`python WORDS` with `--port N`, from when it is ready until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = folder / "stderr"
    environment = os.environ | {"BROKER_URL": url, "BROKER_NAMESPACE": namespace}
    with told.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, "--port", str(port), cwd=ROOT, env=environment,
            stdout=asyncio.subprocess.DEVNULL, stderr=out,
        )  # fmt: skip
    gateway = Gateway(process, port, told)
    try:

        async def ready() -> bool:
            assert process.returncode is None, told.read_text(encoding="utf-8")
            return await gateway.state() == "ready"

        await await_until(ready, 30, what="a gateway that is ready")
        yield gateway
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
