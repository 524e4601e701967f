"""The agent that is killed at every boundary: it books, pays, mails and films; and where it stands at each moment.

Every tool has its effect in a file of lines, which outlives whoever wrote it: `tool key`. `Moments` names each moment
at which a worker may die, and dies at one of them where it is told to.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from broker import Done, Doubt, Pending, Run, Worker, current_call, gated, long_running, tool
from broker.testing.moments import Moments
from tests.journal.asked import call
from tests.worker.fleet import QUICK

TURNS: Final = (
    (call("c1", "search", text="rooms"), call("c2", "book", room=7), call("c3", "pay", amount=40)),
    (call("c4", "mail", to="ada"), call("c5", "film", room=7)),
)
SAID: Final = ["found rooms", "booked 7", "paid 40", "mailed ada", "film of 7"]
"""What the tools say to the model, however often the worker dies."""


class World:
    """What the tools did, in the folder of the test."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "effects"

    def add(self, name: str, key: str, more: str = "") -> None:
        """An effect: whole in the file, or not at all."""
        with self._file.open("a") as lines:
            lines.write(json.dumps([name, key, more]) + "\n")

    def done(self) -> list[list[str]]:
        """All effects so far: tool, key, and what else there is to know."""
        return (
            [json.loads(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []
        )

    def keys(self, name: str) -> list[str]:
        """The keys under which a tool had its effect, one for each time."""
        return [key for tool_name, key, _ in self.done() if tool_name == name]


def tools(world: World, moments: Moments) -> list[Any]:
    """One tool for each way of dealing with a death, and the two that wait for somebody."""

    def effect(name: str) -> None:
        known = current_call()
        moments.at(f"before the effect of {name}")
        world.add(name, known.key, known.token)
        moments.at(f"after the effect of {name}")

    async def search(text: str) -> str:
        effect("search")
        return f"found {text}"

    async def was_booked(key: str) -> Done | None:
        return Done("booked 7") if key in world.keys("book") else None

    @tool(verify=was_booked)
    async def book(room: int) -> str:
        effect("book")
        return f"booked {room}"

    @gated
    async def pay(amount: int) -> str:
        effect("pay")
        return f"paid {amount}"

    @tool(on_doubt=Doubt.ASK)
    async def mail(to: str) -> str:
        effect("mail")
        return f"mailed {to}"

    @gated
    @long_running
    async def film(room: int) -> Pending:
        effect("film")
        return Pending(handle=f"film of {room}")

    return [search, book, pay, mail, film]


async def think(messages: list[Any]) -> dict[str, Any]:
    """The model, as it is written down."""
    said = sum(message["role"] == "assistant" for message in messages)
    if said < len(TURNS):
        return {"role": "assistant", "tool_calls": list(TURNS[said])}
    return {"role": "assistant", "content": "done"}


def handler(world: World, moments: Moments) -> Callable[[Run[Any]], Awaitable[list[Any]]]:
    """The loop people have already."""
    known = tools(world, moments)

    async def travel(run: Run[Any]) -> list[Any]:
        messages: list[Any] = [{"role": "user", "content": run.input}]
        while (turn := await run.step(think, messages)).get("tool_calls"):
            messages += [turn, *await run.calls(turn["tool_calls"], known, context=messages)]
        return [message["content"] for message in messages if message["role"] == "tool"]

    return travel


def worker(url: str, namespace: str, folder: Path, dies_at: str = "") -> Worker:
    """A worker of this agent."""
    moments = Moments(folder / "moments", dies_at)
    made = Worker(url, namespace=namespace, settings=QUICK, observer=moments)
    made.add("travel", handler(World(folder), moments))
    return made


if __name__ == "__main__":
    _, server, space, where, death = sys.argv
    worker(server, space, Path(where), death).run()
