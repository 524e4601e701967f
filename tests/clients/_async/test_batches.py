"""Batches: each item is decided as if it had been sent alone, and told so in its place."""

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    AnswerTo,
    Approve,
    AsyncBroker,
    Conflict,
    Corrupt,
    Edit,
    Interrupt,
    Invalid,
    InvalidInput,
    Mode,
    Principal,
    Reject,
    Replayed,
    RunState,
    StaleLease,
    Superseded,
    Suspension,
    Unknown,
)
from broker.testing import RunningServer
from tests.clients.asking import ADA, BEN, refund

MANY = 150


def pause(n: int, **more: object) -> Suspension:
    fields = {"agent": "a", "session": f"s{n}", "interrupts": (refund(n),), "key": "k", **more}
    return Suspension(**fields)  # type: ignore[arg-type]


async def test_many_pauses_answers_and_ends(broker: AsyncBroker) -> None:
    paused = await broker.batch.suspend([pause(n) for n in range(MANY)])
    assert [type(one) for one in paused] == [Accepted] * MANY
    ids = [one.interrupt_ids[0] for one in paused if isinstance(one, Accepted)]
    assert [one.session_id for one in paused if isinstance(one, Accepted)] == [f"s{n}" for n in range(MANY)]
    told = await broker.batch.answer([AnswerTo(one, Approve()) for one in ids], by=ADA)
    assert [type(one) for one in told] == [Accepted] * MANY
    ended = 0
    while runs := await broker.queue("agents").lease(("a",), limit=50):
        assert all(isinstance(run.resolutions[0].answer, Approve) for run in runs)
        states = await broker.batch.finish([(run, {"n": n}) for n, run in enumerate(runs)])
        assert states == [RunState.FINISHED] * len(runs)
        ended += len(runs)
    assert ended == MANY
    assert (await broker.fleet()).open == 0


async def test_a_repeated_batch_changes_nothing(broker: AsyncBroker) -> None:
    """P3."""
    first = await broker.batch.suspend([pause(n) for n in range(5)])
    again = await broker.batch.suspend([pause(n) for n in range(7)])
    assert [type(one) for one in again] == [Replayed] * 5 + [Accepted] * 2
    assert [one.run_id for one in again[:5] if isinstance(one, Replayed)] == [
        one.run_id for one in first if isinstance(one, Accepted)
    ]
    answers = [AnswerTo(one.interrupt_ids[0], Approve()) for one in first if isinstance(one, Accepted)]
    assert [type(one) for one in await broker.batch.answer(answers, by=ADA)] == [Accepted] * 5
    assert [type(one) for one in await broker.batch.answer(answers, by=ADA)] == [Replayed] * 5
    assert len(await broker.history("s0")) == 2


async def test_each_pause_has_an_outcome_of_its_own(broker: AsyncBroker) -> None:
    """P12: what does not fit is told in its place, with the field, and the others are not held up."""
    await broker.suspend("a", refund(1), session="s1", key="k")
    outcomes = await broker.batch.suspend(
        [
            pause(0),
            pause(1, interrupts=(refund(2),)),
            pause(2, session=" "),
            pause(3, interrupts=()),
            pause(4),
        ]
    )
    assert [type(one) for one in outcomes] == [Accepted, Conflict, Invalid, Invalid, Accepted]
    assert [one.field for one in outcomes if isinstance(one, Invalid)] == ["session", "interrupts"]
    assert len((await broker.inbox.list()).items) == 3


async def test_each_answer_has_an_outcome_of_its_own(broker: AsyncBroker) -> None:
    paused = await broker.batch.suspend([pause(n) for n in range(4)])
    ids = [one.interrupt_ids[0] for one in paused if isinstance(one, Accepted)]
    await broker.inbox.answer(ids[1], Reject(reason="no"), by=BEN)
    outcomes = await broker.batch.answer(
        [
            AnswerTo(ids[0], Approve()),
            AnswerTo(ids[1], Approve()),
            AnswerTo(ids[2], Edit(arguments={"n": 5})),
            AnswerTo(ids[3], Approve(), seen="another"),
            AnswerTo("int_0000" + "0" * 32, Approve()),
            AnswerTo("none of ours", Approve()),
            AnswerTo(ids[0], Reject(reason="twice in one batch")),
        ],
        by=ADA,
    )
    kinds = [type(one) for one in outcomes]
    assert kinds == [Accepted, AlreadyDecided, Invalid, Invalid, Unknown, Unknown, AlreadyDecided]
    first, second = (one for one in outcomes if isinstance(one, AlreadyDecided))
    assert first.winner is not None
    assert first.winner.by == BEN
    assert second.winner is not None
    assert second.winner.by == ADA
    assert len((await broker.inbox.list()).items) == 2


async def test_nobody_answers_in_a_batch_without_a_name(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        with pytest.raises(InvalidInput, match="by"):
            await broker.batch.answer([AnswerTo("x", Approve())])


async def test_the_first_of_several_decides_in_a_batch_too(broker: AsyncBroker) -> None:
    asked = [Interrupt.approval(Action(tool="t", arguments={}), call) for call in ("c1", "c2")]
    paused = await broker.suspend("a", *asked, session="s", mode=Mode.FIRST)
    outcomes = await broker.batch.answer([AnswerTo(one, Approve()) for one in paused.interrupt_ids], by=ADA)
    assert [type(one) for one in outcomes] == [Accepted, Superseded]


async def test_an_early_answer_is_found_by_a_batch(broker: AsyncBroker) -> None:
    await broker.inbox.answer_call("s0", "call_1", Approve(), by=ADA)
    (one,) = await broker.batch.suspend([pause(0)])
    assert isinstance(one, Accepted)
    assert (await broker.inbox.get(one.interrupt_ids[0])).resolution is not None


async def test_an_end_that_is_not_ones_own_is_told_in_its_place(broker: AsyncBroker) -> None:
    for n in range(3):
        await broker.start("a", n, session=f"s{n}")
    runs = await broker.queue("agents").lease(("a",), limit=3)
    await runs[1].release()
    states = await broker.batch.finish([(run, None) for run in runs])
    assert [states[0], states[2]] == [RunState.FINISHED] * 2
    assert isinstance(states[1], StaleLease)


async def test_a_record_that_cannot_be_read_hides_no_outcome(broker: AsyncBroker) -> None:
    paused = await broker.batch.suspend([pause(n) for n in range(5)])
    ids = [one.interrupt_ids[0] for one in paused if isinstance(one, Accepted)]
    p = broker._link.space.partition(0)
    await broker._link.client.execute_command("SET", p.key("interrupt", ids[2]), "foreign")
    outcomes = await broker.batch.answer([AnswerTo(one, Approve()) for one in ids], by=ADA)
    assert [type(one) for one in outcomes] == [Accepted, Accepted, Corrupt, Accepted, Accepted]
    assert [one.ok for one in outcomes] == [True, True, False, True, True]


async def test_a_run_is_finished_with_one_result(broker: AsyncBroker) -> None:
    """Two ends at the same time: the second is not told that its result was kept."""
    started = await broker.start("a", session="s")
    (run,) = await broker.queue("agents").lease(("a",))
    states = await broker.batch.finish([(run, 1), (run, 2), (run, 1)])
    assert states[0] == RunState.FINISHED
    assert isinstance(states[1], InvalidInput)
    assert (await broker.runs.get(started.run_id)).result == 1


async def test_a_batch_is_bounded(broker: AsyncBroker) -> None:
    with pytest.raises(InvalidInput, match="pauses"):
        await broker.batch.suspend([pause(0)] * 1001)


async def test_a_batch_is_few_calls(server: RunningServer, namespace: str) -> None:
    """Off: `joined`, when each item makes a call of its own."""
    sent: list[int] = []

    class Counting:
        def sent(self, calls: object, /) -> None:
            sent.append(len(calls))  # type: ignore[arg-type]

        def told(self, calls: object, /) -> None:
            pass

    async with AsyncBroker(
        server.url, namespace=namespace, observer=Counting(), by=Principal.local("me")
    ) as broker:
        await broker.open()
        sent.clear()
        await broker.batch.suspend([pause(n) for n in range(MANY)])
    assert sum(sent) == MANY
    assert len(sent) <= MANY / 12
