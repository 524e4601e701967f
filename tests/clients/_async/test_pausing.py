"""What a handler may do with a pause, in this colour: swallow it, return after it, meet it in a group of calls."""

import time
from functools import partial
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    CallFailed,
    Interrupt,
    InvalidInput,
    Paused,
    Pending,
    Reject,
    RunState,
    StaleLease,
    gated,
    long_running,
)
from broker.errors import AttemptOver
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run, together, until
from .journaling import Agent, Model, talking


class Desk:
    """One gated tool and one that is not, and what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    @property
    def tools(self) -> list[Any]:
        @gated
        async def pay(amount: int) -> str:
            self.did.append(f"pay {amount}")
            return f"paid {amount}"

        async def search(text: str) -> str:
            self.did.append(f"search {text}")
            return f"found {text}"

        return [pay, search]


@pytest.fixture
def desk() -> Desk:
    return Desk()


TURN = [
    call("c1", "pay", amount=1),
    call("c2", "search", text="x"),
    call("c3", "pay", amount=3),
    call("c4", "pay", amount=4),
]


@pytest.mark.report("RB38")
async def test_RB38_a_turn_pauses_once(timed: AsyncBroker, clock: Clock, desk: Desk) -> None:
    """Three gated and one ungated: one suspension, and the ungated one is done once.

    Off: end.lua that records nothing.
    """
    agent = Agent(timed, clock, talking(TURN, tools=desk.tools))
    assert await agent.start() is RunState.WAITING
    assert desk.did == ["search x"]
    assert list(await agent.asked()) == ["c1", "c3", "c4"]
    record = await agent.record()
    assert (record.seq, len(record.interrupt_ids)) == (1, 3)
    for call_id in ("c1", "c3"):
        await agent.answer(call_id, Approve())
    await agent.answer("c4", Reject(reason="no"))
    assert await agent.go() is RunState.FINISHED
    assert sorted(desk.did) == ["pay 1", "pay 3", "search x"]
    assert (await agent.result())[:3] == ["paid 1", "found x", "paid 3"]


async def test_calls_made_at_the_same_time_pause_once(timed: AsyncBroker, clock: Clock) -> None:
    """The same turn by calls of one's own: all together, each its own task or thread.

    Off: a pause at the first call that asks (`Attempt._is_settled` without `_busy`): the slow one would be cut off.
    """
    asked: list[int] = []
    did: list[str] = []
    slow = time.monotonic() + 0.2

    def ask(amount: int) -> str:
        asked.append(amount)
        return f"Pay {amount}?"

    @gated(message=ask)
    async def pay(amount: int) -> str:
        did.append(f"pay {amount}")
        return f"paid {amount}"

    async def search(text: str) -> str:
        await until(lambda: len(asked) == 3 and time.monotonic() > slow)
        did.append(f"search {text}")
        return f"found {text}"

    async def handler(run: Run[Any]) -> list[Any]:
        async def tried(call_id: str, tool: Any, **arguments: Any) -> Any:
            try:
                return await run.call(tool, arguments, call_id=call_id)
            except CallFailed as failed:
                return failed.kind

        return await together(
            partial(tried, "c1", pay, amount=1), partial(tried, "c2", search, text="x"),
            partial(tried, "c3", pay, amount=3), partial(tried, "c4", pay, amount=4),
        )  # fmt: skip

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert agent.error is None
    assert did == ["search x"]
    assert sorted(str(name) for name in await agent.asked()) == ["c1", "c3", "c4"]
    for call_id in ("c1", "c3"):
        await agent.answer(call_id, Approve())
    await agent.answer("c4", Reject(reason="no"))
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["paid 1", "found x", "paid 3", "rejected"]
    assert sorted(did) == ["pay 1", "pay 3", "search x"]


async def test_tell_the_model_swallows_no_pause(timed: AsyncBroker, clock: Clock, desk: Desk) -> None:
    """`except Exception: tell the model`, around everything. Off: `Paused` as an `Exception`."""
    model = Model(TURN[:1])
    told: list[str] = []

    async def handler(run: Run[Any]) -> list[Any]:
        messages: list[Any] = [{"role": "user", "content": "hello"}]
        for _ in range(9):
            try:
                turn = await run.step(model.ask, messages)
                if not turn.get("tool_calls"):
                    break
                messages += [turn, *await run.calls(turn["tool_calls"], desk.tools)]
            except Exception as error:  # noqa: BLE001 - what is tried
                told.append(type(error).__name__)
                messages.append({"role": "user", "content": str(error)})
        return [message["content"] for message in messages if message["role"] == "tool"]

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), told, desk.did) == (["paid 1"], [], ["pay 1"])


async def test_a_handler_that_returns_after_a_pause_has_paused(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    """A bare `except:` and a result: the result does not count, the answer does. Off: `Attempt.check`."""
    pay, search = desk.tools
    after: list[BaseException] = []

    async def handler(run: Run[Any]) -> str:
        try:
            return str(await run.call(pay, {"amount": 1}, call_id="c1"))
        except:  # noqa: E722 - what is tried
            try:
                await run.call(search, {"text": "x"}, call_id="c2")
            except BaseException as error:  # noqa: BLE001 - what is tried
                after.append(error)
            return "never mind"

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert [type(error) for error in after] == [Paused]
    assert desk.did == []
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == "paid 1"


async def test_a_finally_that_returns_has_paused(timed: AsyncBroker, clock: Clock, desk: Desk) -> None:
    pay, _search = desk.tools
    kept: list[Any] = []

    async def handler(run: Run[Any]) -> str:
        try:
            kept.append(await run.call(pay, {"amount": 1}, call_id="c1"))
        finally:
            return f"{len(kept)} done"  # noqa: B012 - what is tried

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), kept) == ("1 done", ["paid 1"])


async def test_an_error_after_a_pause_is_no_failure(timed: AsyncBroker, clock: Clock, desk: Desk) -> None:
    pay, _search = desk.tools

    async def handler(run: Run[Any]) -> str:
        try:
            return str(await run.call(pay, {"amount": 1}, call_id="c1"))
        except BaseException as paused:
            raise ValueError("what was that?") from paused

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert (await agent.record()).errors == ()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED


async def test_a_loop_that_swallows_a_pause_does_not_hold_up_the_others(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    pay, _search = desk.tools
    seen: list[int] = []

    async def handler(run: Run[Any]) -> str:
        for _ in range(200):
            try:
                return str(await run.call(pay, {"amount": 1}, call_id="c1"))
            except:  # noqa: E722 - what is tried
                seen.append(len(seen))
        return "gave up"

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert len(seen) == 200


async def test_an_attempt_that_ended_asks_for_nothing_more(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    """Behind a mismatch, too: what comes after it is not run, not asked and not recorded."""
    pay, search = desk.tools
    amounts = [1, 2]
    over: list[BaseException] = []

    async def handler(run: Run[Any]) -> str:
        try:
            await run.call(pay, {"amount": amounts.pop(0)}, call_id="c1")
        except Exception:  # noqa: BLE001 - what is tried
            try:
                await run.call(search, {"text": "x"}, call_id="c2")
            except BaseException as error:  # noqa: BLE001 - what is tried
                over.append(error)
        return "fine"

    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.DEAD
    assert [type(error) for error in over] == [AttemptOver]
    assert desk.did == []


async def test_a_pause_made_by_hand_ends_the_journal_too(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    _pay, search = desk.tools

    async def handler(run: Run[Any]) -> None:
        await run.suspend(Interrupt.question({"ask": "why?"}))
        await run.call(search, {"text": "x"})

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert isinstance(agent.error, StaleLease)
    assert desk.did == []


async def test_a_paused_run_cannot_be_finished_or_paused_by_hand(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    pay, _search = desk.tools
    raised: list[str] = []

    async def handler(run: Run[Any]) -> None:
        try:
            await run.call(pay, {"amount": 1}, call_id="c1")
        except Paused:
            for end in (partial(run.finish, "done"), partial(run.suspend, Interrupt.question())):
                try:
                    await end()
                except Paused:
                    raised.append("paused")
        raise Paused(run.id)

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert raised == ["paused", "paused"]


async def test_a_tool_that_pauses_is_not_called_by_a_tool(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    """The outer one would have to run again: it is told so, and the model too."""
    pay, search = desk.tools

    @long_running
    async def render() -> Pending:
        raise AssertionError

    async def handler(run: Run[Any]) -> list[Any]:
        async def inner(which: str) -> Any:
            await run.call(search, {"text": which})
            return await run.call(pay if which == "pay" else render, {"amount": 1} if which == "pay" else {})

        turn = [call("c1", "inner", which="pay"), call("c2", "inner", which="render")]
        return [message["content"] for message in await run.calls(turn, [inner])]

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.FINISHED
    assert [said.split(":")[0] for said in await agent.result()] == ["Error (InvalidInput)"] * 2
    assert sorted(desk.did) == ["search pay", "search render"]


async def test_a_conversation_of_models_is_shown_as_json(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    """What the people see who answer: whatever the messages are made of."""
    pay, _search = desk.tools

    async def handler(run: Run[Any]) -> None:
        context = [Interrupt.question({"q": 1}), {"at": {"b", "a"}}, ("x", None)]
        await run.calls(TURN[:1], [pay], context=context)

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    state = await timed.runs.state(agent.run_id)
    assert state is not None
    assert state.context_snapshot[1:] == [{"at": ["a", "b"]}, ["x", None]]


async def test_a_call_without_an_id_is_found_after_its_pause(
    timed: AsyncBroker, clock: Clock, desk: Desk
) -> None:
    pay, _search = desk.tools

    async def handler(run: Run[Any]) -> list[Any]:
        return [await run.call(pay, {"amount": 1}), await run.call(pay, {"amount": 1})]

    agent = Agent(timed, clock, handler)
    for _ in range(2):
        await agent.start() if not agent.run_id else await agent.go()
        (only,) = (await agent.asked()).values()
        await timed.inbox.answer(only.id, Approve())
    assert await agent.go() is RunState.FINISHED
    assert desk.did == ["pay 1", "pay 1"]


async def test_what_is_no_call_is_said(timed: AsyncBroker, clock: Clock) -> None:
    async def handler(run: Run[Any]) -> None:
        await run.calls([{"id": "c1"}], [])

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert isinstance(agent.error, InvalidInput)
