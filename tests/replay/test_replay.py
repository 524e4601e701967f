"""A whole replay with real processes, and what it notices when something is wrong afterwards.

The runs are of our own making: turns with several calls, calls without ids or with the same id twice, results out of
order, other scripts than ours, null content, a call that the record has no result of.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
import redis.asyncio

from broker import RunState
from broker.core.models import ResultRecord
from broker.replay import Options, Replay, Report
from broker.replay.crew import APPROVER, WORKER, Member
from broker.replay.ledger import lines
from broker.replay.report import accepted, executions
from broker.testing import await_until

DATA = Path(__file__).with_name("data")
RUNS = DATA / "clocks.jsonl"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driven() -> AsyncGenerator[Replay]:
    """A replay that is through, on a server of its own."""
    async with Replay(Options(RUNS, workers=2, approvers=1, timeout=60)) as replay:
        await replay.drive()
        yield replay


@contextmanager
def appended(path: Path, line: str) -> Generator[None]:
    """One more line in a file, for a while."""
    before = path.read_bytes()
    path.write_bytes(before + line.encode() + b"\n")
    yield
    path.write_bytes(before)


def some(*run_ids: str, into: Path) -> Path:
    """A file with some of the runs, and their rules beside it."""
    chosen = [line for line in RUNS.read_text().splitlines() if json.loads(line)["run_id"] in run_ids]
    (into / "some.jsonl").write_text("\n".join(chosen))
    (into / "some.toml").write_text(RUNS.with_suffix(".toml").read_text())
    return into / "some.jsonl"


def stopped(replay: Replay, role: str) -> Member:
    """The first process of a role, stopped where it is."""
    member = next(one for one in replay.crew.members if one.part.role == role)
    os.kill(member.process.pid, signal.SIGSTOP)
    return member


def faults(report: Report) -> dict[str, int]:
    names = ("reruns", "reruns_unexplained", "lost", "mismatched", "doubled_answers", "missing")
    return {name: count for name in names if (count := getattr(report, name))}


async def test_every_run_ends_as_recorded_and_every_call_runs_once(driven: Replay) -> None:
    report = await driven.report()
    assert driven.trouble is None
    assert report.ok
    assert faults(report) == {}
    assert (report.runs, report.calls, report.effects) == (8, 18, 18)
    assert (report.suspensions, report.answered, report.resumed) == (10, 13, 10)
    assert report.wall_s > 0
    assert report.lifecycles_per_s > 0


async def test_the_effects_are_the_calls_of_the_record(driven: Replay) -> None:
    ids = zip(driven.transcripts, driven.run_ids, strict=True)
    recorded = [f"{run_id}:{key}" for one, run_id in ids for key in one.calls]
    executed = executions(lines(driven.effects))
    assert sorted(executed) == sorted(recorded)
    assert {one["attempt"] for some in executed.values() for one in some} == {1}
    assert {json.loads(line)["key"] for line in lines(driven.recorded)} == set(recorded)


async def test_every_question_was_answered_once_by_an_approver(driven: Replay) -> None:
    counts = accepted(lines(driven.answers))
    assert len(counts) == 13
    assert set(counts.values()) == {1}


async def test_a_changed_result_is_a_mismatch(driven: Replay) -> None:
    async with redis.asyncio.Redis.from_url(driven.url) as client:
        (key,) = [name async for name in client.scan_iter(f"*:result:{driven.run_ids[3]}")]
        stored = await client.get(key)
        assert isinstance(stored, bytes)
        result = ResultRecord.from_bytes(stored).result
        result["messages"][-1]["content"] += " "
        await client.set(key, ResultRecord(result=result).to_bytes())
        report = await driven.report()
        await client.set(key, stored)
    assert faults(report) == {"mismatched": 1}
    assert not report.ok


async def test_a_key_twice_in_the_effects_is_a_rerun(driven: Replay) -> None:
    first = json.loads(lines(driven.effects)[4])
    with appended(driven.effects, json.dumps(first | {"fence": first["fence"] + 1})):
        report = await driven.report()
    assert faults(report) == {"reruns": 1, "reruns_unexplained": 1}
    assert not report.ok


async def test_a_rerun_is_explained_by_a_death_before_the_record(driven: Replay) -> None:
    first = json.loads(lines(driven.effects)[4])
    again, mine = json.dumps(first | {"fence": first["fence"] + 9}), f'"{first["key"]}"'
    driven.mischief.killed.append(first["worker"])
    with appended(driven.effects, again):
        assert faults(await driven.report()) == {"reruns": 1, "reruns_unexplained": 1}
        before = driven.recorded.read_bytes()
        driven.recorded.write_text("".join(f"{x}\n" for x in lines(driven.recorded) if mine not in x))
        report = await driven.report()
        driven.recorded.write_bytes(before)
    driven.mischief.killed.clear()
    assert faults(report) == {"reruns": 1}
    assert report.ok


async def test_an_accepted_answer_that_the_server_lost_is_missing(driven: Replay) -> None:
    line = {"by": "approver-1", "interrupt": "int_lost", "outcome": "accepted"}
    with appended(driven.answers, json.dumps(line)):
        report = await driven.report()
    assert faults(report) == {"missing": 1}
    assert not report.ok


async def test_a_second_accepted_answer_is_a_doubled_answer(driven: Replay) -> None:
    with appended(driven.answers, lines(driven.answers)[0]):
        report = await driven.report()
    assert faults(report) == {"doubled_answers": 1}
    assert not report.ok


async def test_an_answer_that_was_told_who_won_is_none(driven: Replay) -> None:
    first = json.loads(lines(driven.answers)[0])
    with appended(driven.answers, json.dumps(first | {"outcome": "already_decided"})):
        assert (await driven.report()).ok


async def test_the_counts_of_pauses_come_from_the_server(driven: Replay) -> None:
    # Somebody who is no approver of the replay pauses and answers a run of one of its sessions: not its business.
    session = driven.transcripts[0].run_id
    async with driven.broker.adopt("stranger", session=session, queue="elsewhere"):
        pass
    assert (await driven.report()).suspensions == 10


async def test_a_run_that_nobody_answers_is_lost(tmp_path: Path) -> None:
    options = Options(some("clocks-1", "clocks-6", into=tmp_path), workers=1, approvers=1, timeout=60)
    async with Replay(options) as replay:
        approver = stopped(replay, APPROVER)
        driving = asyncio.create_task(replay.drive())

        async def one_finished_and_one_waits() -> bool:
            if not all(replay.run_ids):
                return False
            states = [(await replay.broker.runs.get(run_id)).state for run_id in replay.run_ids]
            return states == [RunState.WAITING, RunState.FINISHED]

        await await_until(one_finished_and_one_waits)
        approver.process.kill()
        await driving
        report = await replay.report()
    assert replay.trouble == "every approver has ended: without a word"
    assert faults(report) == {"lost": 1}
    assert (report.suspensions, report.answered, report.resumed) == (1, 0, 0)
    assert not report.ok


async def test_time_is_bounded_and_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    options = Options(some("clocks-4", into=tmp_path), workers=1, approvers=1, timeout=0.3)
    async with Replay(options) as replay:
        worker = stopped(replay, WORKER)
        await replay.drive()
        assert replay.trouble == "not through after 0.3 s"
        assert faults(await replay.report()) == {"lost": 1}
        await replay.crew.kill(worker)
        assert (await replay.crew.add(WORKER)).part.name == "worker-2"
        await replay.broker.wait(replay.run_ids[0], timeout=60)
        report = await replay.report()
    assert report.ok
    assert report.resumed == 2


async def test_an_answer_with_another_value_is_a_mismatch(tmp_path: Path) -> None:
    options = Options(some("clocks-7", into=tmp_path), workers=1, approvers=1, timeout=60)
    async with Replay(options) as replay:
        approver = stopped(replay, APPROVER)
        driving = asyncio.create_task(replay.drive())
        async for delivery in replay.broker.inbox.follow("somebody"):
            await replay.broker.complete(delivery.record.id, "no rust at all")
            break
        await driving
        report = await replay.report()
        await replay.crew.kill(approver)
    assert faults(report) == {"mismatched": 1}
