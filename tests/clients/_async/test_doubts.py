"""Calls whose worker died in their middle, in this colour: run again, asked for, or looked up, as the tool says."""

from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    Cancel,
    Done,
    Doubt,
    Pending,
    Reject,
    Respond,
    RunState,
    current_call,
    gated,
    long_running,
    tool,
)
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run
from .journaling import Agent, Model, loop, talking


class Shop:
    """A tool whose worker dies in its middle the first time, after it has had its effect or before."""

    def __init__(self, **said: Any) -> None:
        self.said = said
        self.dies = 1
        self.calls: list[tuple[str, int, int]] = []
        self.agent: Agent | None = None

    async def order(self, item: str) -> str:
        known = current_call()
        self.calls.append((known.key, known.attempt, known.fence))
        if len(self.calls) <= self.dies:
            assert self.agent is not None
            self.agent.die()
        return f"ordered {item}"


def in_shop(timed: AsyncBroker, clock: Clock, shop: Shop, how: Any) -> Agent:
    """An agent that orders a lamp, by a tool decorated with `how`."""

    async def order(item: str) -> str:
        return await shop.order(item)

    shop.agent = Agent(timed, clock, talking([call("c1", "order", item="lamp")], tools=[how(order)]))
    return shop.agent


async def test_run_again_is_the_default(timed: AsyncBroker, clock: Clock) -> None:
    """Same key, the next attempt, a higher fence: what the tool calls can tell them apart."""
    shop = Shop()
    agent = in_shop(timed, clock, shop, tool())
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.FINISHED]
    key = f"{agent.run_id}:c1"
    assert shop.calls == [(key, 1, 1), (key, 2, 2)]
    assert await agent.result() == ["ordered lamp"]


async def test_a_tool_that_knows_is_asked_first(timed: AsyncBroker, clock: Clock) -> None:
    """It did run: its result is recorded, and it does not run again."""
    asked: list[str] = []

    async def verify(key: str) -> Any:
        asked.append(key)
        return Done("ordered it before")

    shop = Shop()
    agent = in_shop(timed, clock, shop, tool(verify=verify))
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert (len(shop.calls), asked) == (1, [f"{agent.run_id}:c1"])
    assert await agent.result() == ["ordered it before"]


async def test_what_a_tool_knows_not_to_have_run_is_run(timed: AsyncBroker, clock: Clock) -> None:
    async def verify(_key: str) -> Any:
        return None

    shop = Shop()
    agent = in_shop(timed, clock, shop, tool(verify=verify))
    await agent.start()
    assert await agent.go() is RunState.FINISHED
    assert len(shop.calls) == 2


async def test_where_nobody_knows_nothing_is_guessed(timed: AsyncBroker, clock: Clock) -> None:
    """The shop does not reply: the attempt fails, whatever the handler makes of it, and the next one asks again."""
    replies: list[Any] = [ConnectionError("closed"), Done("ordered it before")]

    async def verify(_key: str) -> Any:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    shop = Shop()
    agent = in_shop(timed, clock, shop, tool(verify=verify))
    inner = agent.handler

    async def tells_the_model(run: Run[Any]) -> Any:
        try:
            return await inner(run)
        except Exception:  # noqa: BLE001 - what is tried
            return "it went wrong"

    agent.handler = tells_the_model
    await agent.start()
    assert await agent.go() is RunState.READY
    assert "ConnectionError: closed" in (await agent.record()).errors[-1]
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(shop.calls)) == (["ordered it before"], 1)


async def asking(timed: AsyncBroker, clock: Clock, shop: Shop, how: Any = None) -> Agent:
    """An agent whose worker died in the middle of a call, and which asks what became of it."""
    agent = in_shop(timed, clock, shop, how or tool(on_doubt=Doubt.ASK))
    await agent.start()
    assert await agent.go() is RunState.WAITING
    return agent


async def test_a_person_is_told_that_it_may_have_run(timed: AsyncBroker, clock: Clock) -> None:
    agent = await asking(timed, clock, Shop())
    (record,) = (await agent.asked()).values()
    asked = record.interrupt
    assert (asked.reason, asked.call_id) == ("may_have_run", "c1~1")
    assert asked.message is not None
    assert "may have run" in asked.message
    assert asked.action is not None
    assert (asked.action.tool, asked.action.arguments) == ("order", {"item": "lamp"})
    assert asked.payload == {"call_id": "c1", "attempt": 1}


MAYBE = "It was begun before, and may have run."
ANSWERS = {
    "again": (Approve(), "ordered lamp", 2),
    "its result": (Respond(payload="it is on its way"), "it is on its way", 1),
    "not again": (Reject(reason="ask it"), f"Error (rejected): Not approved by me: ask it. {MAYBE}", 1),
    "nobody cares": (Cancel(), f"Error (cancelled): Given up by me. {MAYBE}", 1),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
async def test_what_a_person_says_is_done(timed: AsyncBroker, clock: Clock, answer: str) -> None:
    given, said, calls = ANSWERS[answer]
    shop = Shop()
    agent = await asking(timed, clock, shop)
    assert await agent.answer("c1~1", given) == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(shop.calls)) == ([said], calls)


async def test_a_doubt_nobody_answers_runs_nothing(timed: AsyncBroker, clock: Clock) -> None:
    shop = Shop()
    agent = await asking(timed, clock, shop)
    clock.advance(timedelta(hours=25))
    await agent.answer("c1~1", Approve())
    await agent.go()
    assert await agent.result() == [
        "Error (expired): Nobody answered in time. It was begun before, and may have run."
    ]
    assert len(shop.calls) == 1


async def test_each_death_is_asked_about(timed: AsyncBroker, clock: Clock) -> None:
    """Approved, and its worker dies again: that is another attempt and another question."""
    shop = Shop()
    shop.dies = 2
    agent = await asking(timed, clock, shop)
    await agent.answer("c1~1", Approve())
    assert await agent.go() is RunState.LEASED
    assert await agent.go() is RunState.WAITING
    assert list(await agent.asked()) == ["c1~2"]
    await agent.answer("c1~2", Approve())
    assert await agent.go() is RunState.FINISHED
    assert [attempt for _, attempt, _ in shop.calls] == [1, 2, 3]


async def test_a_gated_call_in_doubt_runs_by_its_old_approval(timed: AsyncBroker, clock: Clock) -> None:
    """However long the answer takes: the verdict it runs by is kept as long as it is needed, and read again."""
    shop = Shop()
    agent = in_shop(timed, clock, shop, gated(on_doubt=Doubt.ASK, expires_in=None))
    await agent.start()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.LEASED
    assert await agent.go() is RunState.WAITING
    clock.advance(timedelta(hours=5))
    await agent.answer("c1~1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert len(shop.calls) == 2


async def test_a_gated_call_runs_again_under_its_approval(timed: AsyncBroker, clock: Clock) -> None:
    shop = Shop()
    agent = in_shop(timed, clock, shop, gated())
    await agent.start()
    await agent.answer("c1", Approve())
    assert [await agent.go(), await agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert len(shop.calls) == 2


class Works:
    """A job whose starting worker dies before it has a handle."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.agent: Agent | None = None

    async def build(self) -> Pending:
        self.tokens.append(current_call().token)
        if len(self.tokens) == 1:
            assert self.agent is not None
            self.agent.die()
        return Pending(handle=len(self.tokens))


def at_works(timed: AsyncBroker, clock: Clock, works: Works, **how: Any) -> Agent:
    @long_running(**how)
    async def build() -> Pending:
        return await works.build()

    works.agent = Agent(timed, clock, talking([call("c1", "build")], tools=[build]))
    return works.agent


async def test_a_job_is_started_again_with_the_same_token(timed: AsyncBroker, clock: Clock) -> None:
    works = Works()
    agent = at_works(timed, clock, works)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.WAITING]
    first, second = works.tokens
    assert first == second
    await timed.complete(first, "built")
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["built"]


async def test_a_job_that_is_known_to_be_under_way_is_not_started_again(
    timed: AsyncBroker, clock: Clock
) -> None:
    async def verify(_key: str) -> Any:
        return Pending(handle="found it")

    works = Works()
    agent = at_works(timed, clock, works, verify=verify)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.WAITING]
    (record,) = (await agent.asked()).values()
    assert record.interrupt.pending_handle == "found it"
    await timed.complete(works.tokens[0], "built")
    await agent.go()
    assert (await agent.result(), len(works.tokens)) == (["built"], 1)


async def test_a_job_in_doubt_completes_by_its_first_token(timed: AsyncBroker, clock: Clock) -> None:
    """While a person is asked whether to start it again it is completed; the token does not depend on the pause."""
    works = Works()
    agent = at_works(timed, clock, works, on_doubt=Doubt.ASK)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.WAITING]
    assert (await timed.complete(works.tokens[0], "built")).code == "parked"
    await agent.answer("c1~1", Approve())
    assert await agent.go() is RunState.READY
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(works.tokens)) == (["built"], 1)


async def test_a_job_that_is_started_again_after_a_doubt(timed: AsyncBroker, clock: Clock) -> None:
    """Its question is asked by a later pause than its token was made in."""
    works = Works()
    agent = at_works(timed, clock, works, on_doubt=Doubt.ASK)
    await agent.start()
    await agent.go()
    await agent.answer("c1~1", Approve())
    assert await agent.go() is RunState.WAITING
    assert (await timed.complete(works.tokens[0], "built")).code == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(works.tokens)) == (["built"], 2)


async def test_a_step_in_doubt_is_made_again(timed: AsyncBroker, clock: Clock) -> None:
    """A model is asked again, and may answer otherwise: nothing of its first answer was recorded."""
    said: list[str] = []

    async def think() -> str:
        said.append(f"thought {len(said)}")
        if len(said) == 1:
            agent.die()
        return said[-1]

    async def handler(run: Run[Any]) -> Any:
        return await run.step(think)

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert await agent.result() == "thought 1"


async def test_doubts_and_gates_of_one_turn_are_asked_together(timed: AsyncBroker, clock: Clock) -> None:
    shop = Shop()
    paid: list[int] = []

    @tool(on_doubt=Doubt.ASK)
    async def order(item: str) -> str:
        return await shop.order(item)

    @gated
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    model = Model(
        [call("c1", "order", item="lamp")], [call("c2", "order", item="bulb"), call("c3", "pay", amount=4)]
    )

    async def handler(run: Run[Any]) -> Any:
        return await loop(run, model, [order, pay])

    shop.agent = agent = Agent(timed, clock, handler)
    shop.dies = 0
    before = shop.order

    async def dies_at_the_second(item: str) -> str:
        if item == "bulb" and shop.dies == 0:
            shop.dies = 1
            agent.die()
        return await before(item)

    shop.order = dies_at_the_second  # type: ignore[method-assign]
    await agent.start()
    assert await agent.go() is RunState.WAITING
    assert sorted(str(name) for name in await agent.asked()) == ["c2~1", "c3"]
    await agent.answer("c2~1", Respond(payload="came"))
    await agent.answer("c3", Approve())
    await agent.go()
    assert (await agent.result(), paid) == (["ordered lamp", "came", "paid"], [4])
