"""Races that a fleet runs all day: many answers to one question, and an answer against its deadline."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest

from broker import (
    Accepted,
    Action,
    Approve,
    AsyncBroker,
    Expired,
    Interrupt,
    InterruptRecord,
    Outcome,
    Resolution,
    Settlement,
)
from broker.testing import RunningServer
from tests.worker.fleet import Agents

from .asking import at, each
from .crew import SETTINGS, server_time
from .sizes import Size

pytestmark = pytest.mark.drill
PROCESSES = 4
LEAD, SPACE = timedelta(seconds=0.3), timedelta(milliseconds=5)


def refund(n: int, **more: object) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"n": n}), "c", **more)


def deciders(n: int, count: int) -> int:
    """How many decide about one of so many: two to fifty, or of thousands mostly two."""
    return 2 + n % 49 if count < 1000 else 50 if n % 200 == 0 else 2 + (n % 4 == 0)


Told = list[tuple[str, str, str, str]]


async def pressed(
    processes: Callable[..., Agents], folder: Path, questions: list[tuple[str, int]], **pace: float
) -> Told:
    """What everybody was told who decided at the same time: question, decider, outcome, winner."""
    (folder / "questions").write_text(json.dumps(questions))
    common: dict[str, object] = {
        "questions": str(folder / "questions"),
        "go": str(folder / "go"),
        "parts": PROCESSES,
    } | pace
    crew = [
        processes(
            program="tests.drills.agents.deciding", part=part, told=str(folder / f"told-{part}"), **common
        )
        for part in range(PROCESSES)
    ]
    for one in crew:
        await asyncio.to_thread(one.says, "begins")
    (folder / "next").write_text(json.dumps(monotonic() + 0.2))
    (folder / "next").rename(folder / "go")
    for one in crew:
        assert await asyncio.to_thread(one.exit_code, 100) == 0
    return [
        tuple(row) for part in range(PROCESSES) for row in json.loads((folder / f"told-{part}").read_text())
    ]


@pytest.mark.row("X1")
async def test_R06_of_two_to_fifty_deciders_in_several_processes_one_is_accepted(
    broker: AsyncBroker, processes: Callable[..., Agents], tmp_path: Path, size: Size
) -> None:
    """And all others are told of that one. Off: guard `decided` of answer.lua: each would be accepted."""
    count = size(49, 10_000)
    questions: list[tuple[str, int]] = []

    async def ask(n: int) -> None:
        paused = await broker.suspend("a", refund(n), session=f"s{n}")
        questions.append((paused.interrupt_ids[0], deciders(n, count)))

    await each(range(count), ask)
    rows = defaultdict[str, Told](list)
    pace = {"group": size(7, 200), "pace": size(0.03, 0.002)}
    for row in await pressed(processes, tmp_path, questions, **pace):
        rows[row[0]].append(row)
    faults = Counter[str]()
    winners = Counter[int]()

    async def check(question: tuple[str, int]) -> None:
        one, expected = question
        codes = Counter(code for _, _, code, _ in rows[one])
        won = {decider for _, decider, code, _ in rows[one] if code == "accepted"}
        heard = {winner for _, _, code, winner in rows[one] if code == "already_decided"}
        settled = (await broker.inbox.get(one)).resolution
        by = {settled.by.id} if settled and settled.by else set()
        faults.update(lost=not won, doubled=len(won) > 1, unsure=sum(codes.values()) != expected)
        faults.update(misled=heard != won or by != won, other=len(codes - Counter(accepted=1)) > 1)
        winners.update(int(name.removeprefix("decider-")) % PROCESSES for name in won)

    await each(questions, check)
    assert not +faults, dict(faults)
    assert len(winners) > 1, "one process won every race: that was none"


class Race:
    """Answers that come close to the deadline of their questions, which are spread over time."""

    def __init__(self, broker: AsyncBroker, other: AsyncBroker) -> None:
        self.broker, self.other = broker, other
        self.early = timedelta(milliseconds=2)
        self.faults = Counter[str]()
        self.told = Counter[str]()

    @property
    def is_close(self) -> bool:
        """Whether both ends occurred, and not only once."""
        return all(self.told[name] >= 5 for name in ("Accepted", "Expired"))

    async def round(self, number: int, count: int) -> None:
        """So many questions, and one answer to each; the next round's come earlier or later, as this one's fared."""
        before = Counter(self.told)
        async with asyncio.TaskGroup() as group:
            for n in range(count):
                group.create_task(self.run(f"s{number}-{n}", n))
        accepted = (self.told - before)["Accepted"] / count
        self.early += timedelta(milliseconds=round(10 * (0.5 - accepted)))

    async def run(self, session: str, n: int) -> None:
        asked = refund(n, expires_in=LEAD + n * SPACE)
        one = (await self.broker.suspend("a", asked, session=session)).interrupt_ids[0]
        offset = (n % 11 - 5) * timedelta(milliseconds=1)
        record = await self.broker.inbox.get(one)
        assert record.deadline is not None
        waiting = asyncio.create_task(self.other.inbox.wait(one, 30))
        left = record.deadline - await server_time(self.broker) + offset - self.early
        await at(monotonic() + left.total_seconds())
        outcome = await self.broker.inbox.answer(one, Approve())
        self.judge(outcome, await waiting, await self.other.inbox.get(one))
        self.faults["doubled"] += len(await self.broker.history(record.session_id)) != 2

    def judge(self, outcome: Outcome, heard: Resolution, record: InterruptRecord) -> None:
        self.told[type(outcome).__name__] += 1
        assert record.deadline is not None
        ends: dict[type, Settlement] = {Accepted: Settlement.RESOLVED, Expired: Settlement.EXPIRED}
        self.faults["misled"] += ends[type(outcome)] != heard.state
        # Both times are told to the millisecond, and within one either may be.
        in_time, late = heard.at <= record.deadline, heard.at >= record.deadline
        self.faults["untimely"] += not (in_time if isinstance(outcome, Accepted) else late)
        self.faults["changed"] += record.resolution != heard


async def test_R07_an_answer_within_milliseconds_of_its_deadline_has_one_outcome(
    broker: AsyncBroker, server: RunningServer, processes: Callable[..., Agents], tmp_path: Path, size: Size
) -> None:
    """Whoever answers and whoever waits are told the same, and both ends occur; a worker process sweeps meanwhile.

    Off: guard `deadline` of answer.lua: an answer would count that came after the time was over.
    """
    processes(program="tests.drills.agents.working", ledger=str(tmp_path / "ledger"))
    async with AsyncBroker(server.url, namespace=broker.namespace, settings=SETTINGS) as other:
        race, number = Race(broker, other), 0
        while number < size(2, 20) or (number < 40 and not race.is_close):
            await race.round(number, 100)
            number += 1
    assert not +race.faults, (dict(race.faults), dict(race.told))
    assert set(race.told) == {"Accepted", "Expired"}
