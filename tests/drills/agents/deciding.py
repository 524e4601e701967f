"""One process of many that decide the same questions: `python -m tests.drills.agents.deciding URL NAMESPACE OPTIONS`.

Each question has as many deciders as the file says; this process is those whose number fits. They press at the same
instant, for one group of questions after the other. What each was told is in a file of its own.
"""

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

from broker import AlreadyDecided, Approve, AsyncBroker, Principal, Reject
from broker.testing import await_until
from tests.drills.asking import AT_ONCE, at, each
from tests.drills.crew import SETTINGS
from tests.worker.fleet import report

Told = list[tuple[str, str, str, str]]


def read(path: str) -> Any:
    return json.loads(Path(path).read_text())


async def decide(url: str, namespace: str, questions: list[tuple[str, int]], options: dict[str, Any]) -> Told:
    """What each decider of this process was told: question, decider, outcome, winner."""
    told: Told = []
    mine = range(options["part"], 1000, options["parts"])
    chance = random.Random(options["part"])  # each process in an order of its own, or one is ahead everywhere
    async with AsyncBroker(url, namespace=namespace, settings=SETTINGS) as broker:

        async def press(it: tuple[str, int]) -> None:
            one, decider = it
            answer = Approve() if decider % 2 else Reject(reason="no")
            outcome = await broker.inbox.answer(one, answer, by=Principal.local(f"decider-{decider}"))
            winner = outcome.winner.by if isinstance(outcome, AlreadyDecided) else None
            told.append((one, f"decider-{decider}", outcome.code, winner.id if winner else ""))

        await each(questions[:AT_ONCE], lambda one: broker.inbox.get(one[0]))  # every connection is open
        report("begins")
        await await_until(Path(options["go"]).exists, 60)
        begin = read(options["go"])
        for start in range(0, len(questions), options["group"]):
            group = questions[start : start + options["group"]]
            presses = [(one, decider) for one, deciders in group for decider in mine if decider < deciders]
            chance.shuffle(presses)
            await at(begin + start * options["pace"])
            await each(presses, press)
    return told


def main() -> None:
    url, namespace, given = sys.argv[1:]
    options: dict[str, Any] = json.loads(given)
    told = asyncio.run(decide(url, namespace, read(options["questions"]), options))
    Path(options["told"]).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
