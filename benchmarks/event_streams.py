"""How long an answer takes to every screen: open event streams, answers at a rate, and the times between them.

    python -m benchmarks.event_streams --streams 500 --answers 200 --seconds 20

Three processes on one machine: a gateway, the clients, and who answers; and a server of their own. Each stream follows
one session, as the page of one card does; `--whole` of them follow everything, as an inbox does.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from typing import Final

import aiohttp

from broker import Action, Approve, AsyncBroker, Interrupt, Principal
from broker.testing import find_servers, running

NAMESPACE: Final = "load"
GATEWAY: Final = """
import sys, asyncio, uvicorn
from broker import AsyncBroker
from broker.gateway import GatewaySettings, create_app
settings = GatewaySettings(streams_per_caller=5000, streams=5000, requests_per_minute=0)
app = create_app(AsyncBroker(sys.argv[1], namespace=sys.argv[2]), settings=settings)
uvicorn.run(app, port=int(sys.argv[3]), log_level="warning")
"""


async def follow(
    http: aiohttp.ClientSession, url: str, ready: asyncio.Event, seen: list[tuple[str, float]]
) -> None:
    """Notes when each settlement reaches one client."""
    async with http.get(url) as response:
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"id: "):
                ready.set()
            elif line.startswith(b"data: "):
                event = json.loads(line[6:])
                if event["type"] == "interrupt.settled":
                    seen.append((event["interrupt_id"], time.perf_counter()))


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def new_key(url: str) -> str:
    """A key of a reviewer, as an operator makes it."""
    command = [sys.executable, "-m", "broker", "--url", url, "--namespace", NAMESPACE, "--json"]
    made = subprocess.run([*command, "keys", "create", "load"], check=True, capture_output=True)  # noqa: S603
    return str(json.loads(made.stdout)["text"])


async def load(url: str, port: int, args: argparse.Namespace) -> None:
    """Asks, follows, answers, and prints what was measured."""
    async with AsyncBroker(url, namespace=NAMESPACE) as broker:
        key = await asyncio.to_thread(new_key, url)
        count = args.answers * args.seconds
        question = Interrupt.approval(Action(tool="t", arguments={}), "c")
        asked = [
            (await broker.suspend("a", question, session=f"s{n}")).interrupt_ids[0] for n in range(count)
        ]
        headers = {"Authorization": f"Bearer {key}"}
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as http:
            seen: list[list[tuple[str, float]]] = [[] for _ in range(args.streams)]
            ready = [asyncio.Event() for _ in range(args.streams)]
            base = f"http://127.0.0.1:{port}/v1/events"
            urls = [base if n < args.whole else f"{base}?session=s{n}" for n in range(args.streams)]
            tasks = [asyncio.create_task(follow(http, *one)) for one in zip(urls, ready, seen, strict=True)]
            for one in ready:
                await asyncio.wait_for(one.wait(), 60)
            answered = await answer(broker, asked, args.answers)
            await asyncio.sleep(2)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    report(args, seen, answered)


async def answer(broker: AsyncBroker, asked: list[str], rate: int) -> dict[str, float]:
    """When each answer was accepted; they are given at a rate, whatever becomes of them."""
    answered: dict[str, float] = {}

    async def one(interrupt: str) -> None:
        outcome = await broker.inbox.answer(interrupt, Approve(), by=Principal(id="ada"))
        if not outcome.ok:
            raise RuntimeError(str(outcome))
        answered[interrupt] = time.perf_counter()

    began, tasks = time.perf_counter(), []
    for n, interrupt in enumerate(asked):
        await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(one(interrupt)))
    await asyncio.gather(*tasks)
    print(f"{len(asked)} answers in {time.perf_counter() - began:.1f} s")
    return answered


def report(args: argparse.Namespace, seen: list[list[tuple[str, float]]], answered: dict[str, float]) -> None:
    """Prints one line for each sort of stream."""
    for name, rows in (("whole", seen[: args.whole]), ("session", seen[args.whole :])):
        times = [(at - answered[one]) * 1000 for row in rows for one, at in row]
        expected = (
            len(rows) * len(answered) if name == "whole" else min(len(answered), args.streams) - args.whole
        )
        if times:
            p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
            print(
                f"{name}: {len(rows)} streams, {len(times)} of {expected} events, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
            )


def main() -> None:
    """Runs it against a server and a gateway of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--whole", type=int, default=0)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--port", type=int, default=8799)
    args = parser.parse_args()
    source = next(one for one in find_servers(containers=False) if not one.missing)
    with running(source) as server:
        command = [sys.executable, "-c", GATEWAY, server.url, NAMESPACE, str(args.port)]
        gateway = subprocess.Popen(command)  # noqa: S603 - this interpreter
        try:
            asyncio.run(load(server.url, args.port, args))
        finally:
            gateway.terminate()
            gateway.wait(20)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"gateway and server: {used.ru_utime + used.ru_stime:.1f} s of processor time")


if __name__ == "__main__":
    main()
