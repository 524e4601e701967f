"""The cases with the broker: the same for every framework. A test's name is the case's id.

A case that a subject has no way for is not here: its framework's own behaviour is shown in `test_of_<adapter>.py`.
"""

from dataclasses import replace

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    BuildMismatch,
    Complete,
    Edit,
    Interrupt,
    Invalid,
    Reject,
    Replayed,
    Respond,
    RunRecord,
    RunState,
    Settlement,
    Unknown,
)
from broker.core.answers import AnswerKind
from broker.testing import ServerProcess
from tests.worker.fleet import QUICK

from .cases import Subject
from .stage import ME, Stage, shown

TEN = {"amount": 10}


def amounts(stage: Stage) -> list[int]:
    """What was paid, in the order of the amounts."""
    return sorted(one.given for one in stage.world.effects)


async def test_approve(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    assert shown(asked.interrupt) == TEN
    assert stage.world.effects == []
    assert isinstance(await stage.answer(asked, Approve()), Accepted)
    done = await stage.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    (effect,) = stage.world.effects
    assert (effect.given, effect.pid) == (10, stage.pids[1])
    assert run.id in effect.key


async def test_reject(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    await stage.answer_all(run, [Reject(reason="too much")])
    done = await stage.finished(run, "pay")
    assert done.state is RunState.FINISHED, done.errors
    assert "too much" in done.result[0]
    assert stage.world.effects == []


async def test_edit(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    await stage.answer_all(run, [Edit(arguments={"amount": 3})])
    done = await stage.finished(run, "pay")
    assert (done.result, amounts(stage)) == (["paid 3"], [3]), done.errors


@pytest.mark.report("RB29", "RB35")
async def test_external(stage: Stage) -> None:
    """A result from outside is the call's own, no text about waiting; as approvals are, it is an answer."""
    run = await stage.paused("external", TEN)
    (asked,) = await stage.asked(run)
    completes = AnswerKind.COMPLETE in asked.interrupt.offered
    await stage.answer_all(
        run, [Complete(value="frames=240") if completes else Respond(payload="frames=240")]
    )
    done = await stage.finished(run, "external")
    assert done.state is RunState.FINISHED, done.errors
    assert "frames=240" in done.result[0]
    assert stage.world.effects == []


@pytest.mark.report("RB3", "RB4", "RB36")
async def test_in_a_row(stage: Stage) -> None:
    """A second round of the same turn asks as the first did (RB36)."""
    run = await stage.paused("in_a_row", TEN)
    await stage.answer_all(run, [Approve()])
    stage.worker("in_a_row")
    again = await stage.next_pause(run)
    assert set(again.interrupt_ids).isdisjoint(run.interrupt_ids)
    assert amounts(stage) == [10]
    await stage.answer_all(run, [Approve()])
    done = await stage.ended(run)
    assert (done.result, amounts(stage)) == (["paid 10", "paid 10"], [10, 10]), done.errors
    assert len({one.key for one in stage.world.effects}) == 2


@pytest.mark.report("RB7", "RB63")
async def test_three_at_once(stage: Stage) -> None:
    run = await stage.paused("three")
    await stage.answer_all(run, [Approve(), Approve(), Approve()])
    done = await stage.finished(run, "three")
    assert sorted(done.result) == ["paid 1", "paid 2", "paid 3"], done.errors
    assert amounts(stage) == [1, 2, 3]
    assert len({one.key for one in stage.world.effects}) == 3


@pytest.mark.report("RB8", "RB32")
async def test_three_one_by_one(stage: Stage) -> None:
    """Some answers are not enough: nothing runs until the last one (RB32)."""
    run = await stage.paused("three")
    stage.worker("three")
    asked = await stage.asked(run)
    for one in (asked[2], asked[0]):
        assert (await stage.answer(one, Approve())).ok
        assert (await stage.broker.runs.get(run.id)).state is RunState.WAITING
    assert stage.world.effects == []
    assert (await stage.answer(asked[1], Reject(reason="not that one"))).ok
    done = await stage.ended(run)
    kept = shown(asked[1].interrupt)["amount"]
    assert amounts(stage) == [n for n in (1, 2, 3) if n != kept], done.errors
    assert "not that one" in "".join(done.result)


@pytest.mark.report("RB31")
async def test_duplicate(stage: Stage) -> None:
    """An approval is counted once, and the tool runs once (RB31)."""
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    assert isinstance(await stage.answer(asked, Approve()), Accepted)
    assert isinstance(await stage.answer(asked, Approve()), Replayed)
    await stage.finished(run, "pay")
    assert isinstance(await stage.answer(asked, Approve()), Replayed)
    assert amounts(stage) == [10]


@pytest.mark.report("RB11")
async def test_flipped(stage: Stage) -> None:
    """RB11: the first answer holds, whatever is answered after it."""
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    await stage.answer(asked, Approve())
    flipped = await stage.answer(asked, Reject(reason="no, wait"))
    assert isinstance(flipped, AlreadyDecided)
    assert flipped.winner.by == ME
    done = await stage.finished(run, "pay")
    assert (done.result, amounts(stage)) == (["paid 10"], [10])


@pytest.mark.report("RB1")
async def test_late(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    await stage.answer(asked, Approve())
    await stage.finished(run, "pay")
    assert isinstance(await stage.answer(asked, Edit(arguments={"amount": 7})), AlreadyDecided | Invalid)
    assert isinstance(await stage.answer(asked, Reject(reason="late")), AlreadyDecided)
    assert (await stage.broker.runs.get(run.id)).state is RunState.FINISHED
    assert amounts(stage) == [10]


async def test_unknown_id(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    other = run.interrupt_ids[0][:-4] + "0000"
    assert isinstance(await stage.broker.inbox.answer(other, Approve(), by=ME), Unknown)
    assert (await stage.broker.runs.get(run.id)).state is RunState.WAITING


async def test_wrong_kind(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    outcome = await stage.answer(asked, Complete(value="as if it had run"))
    assert isinstance(outcome, Invalid)
    assert outcome.field == "answer.kind"
    await stage.answer_all(run, [Approve()])
    assert (await stage.finished(run, "pay")).result == ["paid 10"]
    assert amounts(stage) == [10]


async def test_wrong_shape(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    outcome = await stage.answer(asked, Edit(arguments={"amount": "many"}))
    assert isinstance(outcome, Invalid), outcome
    await stage.answer_all(run, [Edit(arguments={"amount": 4})])
    assert (await stage.finished(run, "pay")).result == ["paid 4"]
    assert amounts(stage) == [4]


@pytest.mark.parametrize("value", [None, False, {}, ""], ids=["None", "False", "map", "text"])
async def test_empty_answers(stage: Stage, value: object) -> None:
    run = await stage.paused("question")
    await stage.answer_all(run, [Respond(payload=value)])
    done = await stage.finished(run, "question")
    assert (done.state, done.result) == (RunState.FINISHED, [value]), done.errors


@pytest.mark.report("RB40")
async def test_race(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    workers = [stage.worker("pay"), stage.worker("pay")]
    for worker in workers:
        await stage.is_up(worker)
    await stage.answer_all(run, [Approve()])
    done = await stage.ended(run)
    assert (done.result, amounts(stage)) == (["paid 10"], [10]), done.errors


@pytest.mark.report("RB31", "RB34")
async def test_killed(stage: Stage) -> None:
    """Whoever dies after the effect has it made again under the same key: that of the call, not the attempt (RB34)."""
    run = await stage.paused("pay", TEN)
    stage.world.hold()
    await stage.answer_all(run, [Approve()])
    victim = stage.worker("pay")
    await stage.has_effects(1)
    victim.kill()
    stage.world.let_go()
    done = await stage.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    first, second = stage.world.effects
    assert first.key == second.key
    assert (first.pid, second.pid) == tuple(stage.pids[1:])


@pytest.mark.report("RB18")
async def test_new_input(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (old,) = await stage.asked(run)
    newer = await stage.start({"amount": 7})
    stage.worker("pay")
    await stage.when(newer, RunState.WAITING)
    assert (await stage.broker.inbox.get(old.id)).state is Settlement.SUPERSEDED
    assert not (await stage.answer(old, Approve())).ok
    await stage.answer_all(newer, [Approve()])
    done = await stage.ended(newer)
    assert "paid 7" in done.result
    assert amounts(stage) == [7]


@pytest.mark.report("RB26")
async def test_nested(stage: Stage) -> None:
    """Nested agents are read back, asked about once, and told apart by who asks (RB26)."""
    run = await stage.paused("nested")
    first, second = await stage.asked(run)
    assert first.id != second.id
    keep = {"amount": 2}
    await stage.answer_all(
        run, [Reject(reason="no") if shown(one.interrupt) == keep else Approve() for one in (first, second)]
    )
    done = await stage.finished(run, "nested")
    assert done.state is RunState.FINISHED, done.errors
    assert amounts(stage) == [1]


@pytest.mark.report("RB28")
async def test_other_build(stage: Stage) -> None:
    """Two ways: a worker that declares something else is given nothing; one that gets it all the same refuses."""
    run = await stage.paused("pay", TEN)
    await stage.answer_all(run, [Approve()])
    other = stage.worker("pay", changed=True)
    await stage.is_up(other)
    probe = await stage.start(TEN, session="thread-2")
    await stage.when(probe, RunState.WAITING)
    assert (await stage.broker.runs.get(run.id)).state is RunState.READY
    assert run.build is not None
    other.kill()
    forced = stage.worker("pay", changed=True, build=run.build)
    dead = await stage.when(run.id, RunState.DEAD)
    assert dead.errors
    assert BuildMismatch.code in dead.errors[0]
    assert stage.world.effects == []
    forced.kill()
    await stage.broker.dead.requeue(run.id)
    done = await stage.finished(run, "pay")
    assert (done.result, amounts(stage)) == (["paid 10"], [10]), done.errors


async def refused(stage: Stage, scenario: str, word: str) -> None:
    run_id = await stage.start(TEN)
    stage.worker(scenario)
    dead = await stage.when(run_id, RunState.DEAD, RunState.WAITING)
    assert dead.state is RunState.DEAD
    assert word.lower() in " ".join(dead.errors).lower()
    assert dead.interrupt_ids == ()
    assert (await stage.broker.inbox.list()).items == ()


@pytest.mark.report("RB14", "RB15", "RB48", "RB56")
async def test_unreadable(stage: Stage) -> None:
    """RB14, RB15: a pause that the framework's own store does not give back is not published."""
    await refused(stage, "unreadable", "")


async def test_too_large(stage: Stage) -> None:
    await refused(stage, "large", "bytes")


@pytest.mark.report("RB48")
async def test_unserializable(stage: Stage) -> None:
    await refused(stage, "unserializable", "")


async def test_expired(stage: Stage) -> None:
    run = await stage.paused("pay", TEN, seconds=0.5)
    done = await stage.finished(run, "pay", seconds=0.5)
    (asked,) = await stage.asked(run)
    assert asked.state is Settlement.EXPIRED
    assert stage.world.effects == []
    assert "nobody answered" in " ".join((*(done.result or []), *done.errors)).lower()


@pytest.mark.report("RB27", "RB30")
async def test_changed_arguments(stage: Stage, subject: Subject) -> None:
    """An answer to other arguments than are asked about does not count, nor do arguments changed later (RB27, RB30).

    Where the framework keeps its states itself, its subject's `change` alters the pending call there.
    """
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    other = Interrupt(**{**dict(asked.interrupt), "payload": {"amount": 1_000}}).content_digest
    wrong = await stage.broker.inbox.answer(asked.id, Approve(), seen=other, by=ME)
    assert not wrong.ok
    await stage.answer_all(run, [Approve()])
    change = getattr(subject, "change", None)
    if change is not None:
        change(stage.world, stage.session, 1_000)
    stage.worker("pay")
    now = await stage.when(run.id, RunState.FINISHED, RunState.DEAD, RunState.WAITING)
    assert 1_000 not in amounts(stage)
    assert change is not None or (now.result, amounts(stage)) == (["paid 10"], [10]), now.errors


async def test_swallowed(stage: Stage) -> None:
    run = await stage.paused("swallow", TEN)
    assert stage.world.effects == []
    await stage.answer_all(run, [Approve()])
    done = await stage.finished(run, "swallow")
    assert amounts(stage) == [10], done.errors


async def restarted(stage: Stage, own: ServerProcess, *, empty: bool) -> tuple[RunRecord, Stage]:
    """A pause on a server of one's own, which is restarted then, with or without what it had stored."""
    async with AsyncBroker(own.url, namespace="restart", settings=QUICK, by=ME) as before:
        there = replace(stage, broker=before, url=own.url, namespace="restart")
        run = await there.paused("pay", TEN)
    own.stop()
    if empty:
        for kept in own.directory.glob("appendonlydir/*"):
            kept.unlink()
        for kept in own.directory.glob("*.rdb"):
            kept.unlink()
    own.start()
    return run, there


async def test_restart(stage: Stage, own_server: ServerProcess) -> None:
    run, there = await restarted(stage, own_server, empty=False)
    async with AsyncBroker(own_server.url, namespace="restart", settings=QUICK, by=ME) as broker:
        there.broker = broker
        await there.answer_all(run, [Approve()])
        assert (await there.finished(run, "pay")).result == ["paid 10"]
        assert amounts(stage) == [10]


async def test_restart_empty(stage: Stage, own_server: ServerProcess) -> None:
    run, _ = await restarted(stage, own_server, empty=True)
    async with AsyncBroker(own_server.url, namespace="restart", settings=QUICK, by=ME) as broker:
        (lost,) = run.interrupt_ids
        assert isinstance(await broker.inbox.answer(lost, Approve(), by=ME), Unknown)
        assert (await broker.inbox.list()).items == ()
    assert stage.world.effects == []
