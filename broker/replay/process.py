"""One process of a replay: `python -m broker.replay`, with its part as a JSON line on standard input.

It says `ready` on standard output when it is connected, works until its standard input ends (so that it does not
outlive its parent), then drains.
"""

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .. import AsyncBroker, Audience, Principal, PrincipalKind, Worker
from ..core.settings import Settings
from .ledger import Ledger, Recorder, compact
from .merging import merge_turns
from .options import HARD_TIMES
from .patience import patiently
from .player import AGENT, QUEUE, Player, answer_to
from .transcripts import Rules, Transcript, read_again


@dataclass(frozen=True, slots=True)
class Part:
    """What one process is to do. `history` is where it records its calls, where that is wanted."""

    role: str
    name: str
    url: str
    namespace: str
    runs: str
    confirm: tuple[str, ...]
    long: tuple[str, ...]
    concurrency: int
    effects: str
    answers: str
    recorded: str
    history: str | None
    merge_turns: int = 1
    pace: float = 0.0
    is_rough: bool = False

    @property
    def settings(self) -> Settings | None:
        """How the namespace behaves: every process says the same."""
        return HARD_TIMES if self.is_rough else None

    def recorder(self) -> Recorder | None:
        """The observer of this process."""
        return Recorder(Path(self.history)) if self.history else None


async def work(part: Part, transcripts: dict[str, Transcript]) -> None:
    """Runs the recorded agent until standard input ends."""
    rules = Rules(frozenset(part.confirm), frozenset(part.long))
    worker = Worker(
        part.url, namespace=part.namespace, queue=QUEUE, name=part.name, concurrency=part.concurrency,
        observer=part.recorder(), settings=part.settings,
    )  # fmt: skip
    effects, recorded = Ledger(Path(part.effects)), Ledger(Path(part.recorded))
    worker.add(AGENT, Player(part.name, transcripts, rules, effects, recorded, part.pace).play)
    await worker.broker.open()
    serving = asyncio.create_task(worker.serve())
    await asyncio.sleep(0)  # it has begun: `stop` reaches it
    say_ready(worker.stop)
    await serving


async def approve(part: Part, transcripts: dict[str, Transcript]) -> None:
    """Answers the questions of both groups until standard input ends, and notes what it was told."""
    told = Ledger(Path(part.answers))
    by = Principal(id=part.name, kind=PrincipalKind.SERVICE)
    async with AsyncBroker(
        part.url, namespace=part.namespace, by=by, observer=part.recorder(), settings=part.settings
    ) as broker:

        async def follow(group: Audience) -> None:
            async for delivery in broker.inbox.follow(group, consumer=f"{part.name}-{group}"):
                record = delivery.record
                answer = answer_to(record, transcripts)
                if answer is not None:
                    outcome = await patiently(
                        partial(broker.inbox.answer, record.id, answer, seen=record.digest)
                    )
                    told.add(compact({"by": part.name, "interrupt": record.id, "outcome": outcome.code}))

        tasks = [asyncio.create_task(follow(group)) for group in Audience]
        loop = asyncio.get_running_loop()
        say_ready(lambda: loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks]))
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)


def say_ready(stop: Callable[[], object]) -> None:
    """Tells the parent, and calls `stop` when the parent closes our standard input or ends."""

    def wait() -> None:
        sys.stdin.read()
        stop()

    threading.Thread(target=wait, name="replay-parent", daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def main() -> None:
    """Does the part that standard input names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it stops its processes in order
    part = Part(**json.loads(sys.stdin.readline()))
    transcripts = {
        run_id: merge_turns(one, part.merge_turns) for run_id, one in read_again(Path(part.runs)).items()
    }
    asyncio.run((work if part.role == "worker" else approve)(part, transcripts))
