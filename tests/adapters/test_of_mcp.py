"""MCP beside the suite: forms, both generations of it, and states that are taken once.

Its servers are processes of their own, each new for each connection.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import mcp
import pytest
from mcp import StdioServerParameters, types

from broker import (
    Approve,
    AsyncBroker,
    Complete,
    Edit,
    InvalidInput,
    Reject,
    Respond,
    RunState,
    Settlement,
)
from broker.adapters.mcp import SingleUse, Tools
from broker.testing import RunningServer, await_until
from tests.worker.fleet import ROOT

from .stage import Stage
from .subjects.mcp import Bank
from .world import World

Connect = Callable[..., AbstractAsyncContextManager[mcp.Client]]
CALL = {"tool": "pay", "arguments": {"account": "rent"}}


@pytest.fixture
def bank(server: RunningServer, namespace: str, world: World) -> Connect:
    """Connects to a new process of the bank."""

    @asynccontextmanager
    async def connect(
        elicit: Any = None, *, legacy: bool = False, **options: Any
    ) -> AsyncIterator[mcp.Client]:
        given = json.dumps({"folder": str(world.folder)} | options)
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "tests.adapters.bank", server.url, namespace, given],
            cwd=str(ROOT),
        )
        mode = "legacy" if legacy else "auto"
        async with mcp.Client(command, elicitation_callback=elicit or _nobody, mode=mode) as client:
            yield client

    return connect


async def _nobody(_context: Any, _params: Any) -> types.ElicitResult:
    raise AssertionError("nobody is asked in the middle of a call")


async def go_on(broker: AsyncBroker, tools: Tools, run_id: str) -> Any:
    """The result of a run's next segment; None where it has paused."""
    async with broker.take(run_id) as run:
        result = await tools(run)
        await run.finish(result)
        return result
    return None


async def one_question(broker: AsyncBroker, run_id: str) -> Any:
    run = await broker.runs.get(run_id)
    assert run.state is RunState.WAITING, run
    (asked,) = run.interrupt_ids
    return await broker.inbox.get(asked)


def text(result: Any) -> str:
    found: str = result["content"][0]["text"]
    return found


@pytest.mark.report("RA32")
@pytest.mark.cannot("edit")
@pytest.mark.cannot("wrong_shape")
async def test_a_form_is_answered_by_what_fits_it(broker: AsyncBroker, bank: Connect, world: World) -> None:
    """Paused over one connection, gone on with over another one to another process; the call stays as it was."""
    tools = Tools("bank", bank)
    run_id = (await broker.start("bank", CALL, session="s")).run_id
    assert await go_on(broker, tools, run_id) is None
    asked = await one_question(broker, run_id)
    assert (asked.interrupt.message, asked.interrupt.action.tool) == ("How much of rent?", "pay")
    for wrong in (Approve(), Edit(arguments={"account": "mine"}), Respond(payload={"amount": "many"})):
        assert not (await broker.inbox.answer(asked.id, wrong, seen=asked.digest)).ok
    assert (await broker.inbox.answer(asked.id, Respond(payload={"amount": 3}), seen=asked.digest)).ok
    result = await go_on(broker, tools, run_id)
    assert (text(result), result["isError"]) == ("paid 3 of rent", False)
    assert [effect.given for effect in world.effects] == [3]


async def test_a_call_that_is_asked_twice_in_its_middle_is_made_three_times(
    broker: AsyncBroker, bank: Connect, world: World
) -> None:
    """On the older versions the call is given up at the first question it has no answer to, and made again later."""
    tools = Tools("bank", lambda elicit: bank(elicit, legacy=True))
    run_id = (await broker.start("bank", CALL | {"tool": "pay_live"}, session="s")).run_id
    for amount, message in ((3, "How much of rent?"), (4, "Really 3?")):
        assert await go_on(broker, tools, run_id) is None
        asked = await one_question(broker, run_id)
        assert asked.interrupt.message == message
        assert world.effects == []
        assert (await broker.inbox.answer(asked.id, Respond(payload={"amount": amount}))).ok
    assert text(await go_on(broker, tools, run_id)) == "paid 4 of rent"
    assert [effect.given for effect in world.effects] == [4]


async def test_a_no_in_the_middle_of_a_call_is_told(broker: AsyncBroker, bank: Connect, world: World) -> None:
    tools = Tools("bank", lambda elicit: bank(elicit, legacy=True))
    run_id = (await broker.start("bank", CALL | {"tool": "pay_live"}, session="s")).run_id
    await go_on(broker, tools, run_id)
    asked = await one_question(broker, run_id)
    await broker.inbox.answer(asked.id, Reject(reason="not this month"))
    result = await go_on(broker, tools, run_id)
    assert text(result) == "not paid: decline"
    assert "not this month" in result["_meta"]["interrupt-broker/told"][0]
    assert world.effects == []


@pytest.mark.cannot("empty_answers")
@pytest.mark.parametrize("nothing", [None, False, {}, ""])
async def test_a_form_takes_no_empty_answer(
    broker: AsyncBroker, bank: Connect, world: World, nothing: Any
) -> None:
    """It asks for values by name: what holds none of them is refused, and the question stays."""
    run_id = (await broker.start("bank", CALL, session="s")).run_id
    await go_on(broker, Tools("bank", bank), run_id)
    asked = await one_question(broker, run_id)
    assert not (await broker.inbox.answer(asked.id, Respond(payload=nothing))).ok
    assert (await broker.inbox.get(asked.id)).state is Settlement.OPEN
    assert world.effects == []


@pytest.mark.cannot("new_input")
async def test_calls_of_a_session_know_nothing_of_one_another(
    broker: AsyncBroker, bank: Connect, world: World
) -> None:
    tools = Tools("bank", bank)
    first, second = [(await broker.start("bank", CALL, session="s")).run_id for _ in range(2)]
    await go_on(broker, tools, first)
    asked = await one_question(broker, first)
    await go_on(broker, tools, second)
    assert (await broker.inbox.get(asked.id)).state is Settlement.OPEN
    assert (await one_question(broker, second)).id != asked.id
    assert (await broker.inbox.answer(asked.id, Respond(payload={"amount": 3}))).ok
    assert text(await go_on(broker, tools, first)) == "paid 3 of rent"
    assert [effect.given for effect in world.effects] == [3]


@pytest.mark.cannot("unserializable")
async def test_what_is_no_json_is_no_call(broker: AsyncBroker) -> None:
    with pytest.raises(InvalidInput, match="input"):
        await broker.start("bank", {"tool": "pay", "arguments": {"account": object()}}, session="s")
    assert await broker.runs.ready("agents") == ()


@pytest.mark.cannot("unreadable")
async def test_a_state_that_the_server_does_not_take_ends_the_call_with_an_error(
    broker: AsyncBroker, world: World
) -> None:
    """As after a restart with another key: the answer stays on record, and another try would not help."""

    def bank(elicit: Any) -> mcp.Client:
        app = Bank(world).app
        app._lowlevel_server.middleware[:] = mcp.server.mcpserver.MCPServer(
            "bank"
        )._lowlevel_server.middleware
        return mcp.Client(app, elicitation_callback=elicit)

    tools = Tools("bank", bank)
    run_id = (await broker.start("bank", {"tool": "pay", "arguments": {"amount": 1}}, session="s")).run_id
    await go_on(broker, tools, run_id)
    await broker.inbox.answer((await one_question(broker, run_id)).id, Approve())
    result = await go_on(broker, tools, run_id)
    assert (text(result), result["isError"]) == ("Invalid or expired requestState", True)
    assert world.effects == []


@pytest.mark.cannot("three_one_by_one")
@pytest.mark.cannot("nested")
async def test_three_forms_are_answered_one_by_one(broker: AsyncBroker, stage: Stage) -> None:
    run = await stage.paused("three")
    asked = await stage.asked(run)
    assert len({one.id for one in asked}) == 3
    for one, answer in zip(asked, (Approve(), Reject(reason="not that one"), Approve()), strict=True):
        assert (await broker.runs.get(run.id)).state is RunState.WAITING
        assert (await stage.answer(one, answer)).ok
    done = await stage.finished(run, "three")
    assert done.result[:2] == ["paid 1", "not paid: 2"]
    assert "not that one" in done.result[2]
    assert sorted(one.given for one in stage.world.effects) == [1, 3]


async def test_a_server_that_asks_for_another_call_gets_it(broker: AsyncBroker, world: World) -> None:
    """By itself after a while, at once where somebody completes the interrupt with nothing; a value ends the call."""
    tools = Tools("bank", lambda elicit: mcp.Client(Bank(world).app, elicitation_callback=elicit),
                  again_after=timedelta(milliseconds=50))  # fmt: skip
    run_id = (
        await broker.start("bank", {"tool": "external", "arguments": {"amount": 1}}, session="s")
    ).run_id
    await go_on(broker, tools, run_id)

    async def again() -> bool:
        asked = await one_question(broker, run_id)
        await broker.inbox.answer(asked.id, Complete(value=None))
        return bool((await broker.runs.get(run_id)).state is RunState.READY)

    await await_until(again, 10, what="it is to be called again")
    assert await go_on(broker, tools, run_id) is None
    slow = Tools("bank", lambda elicit: mcp.Client(Bank(world).app, elicitation_callback=elicit))
    assert (await broker.runs.get(run_id)).seq == 2
    asked = await one_question(broker, run_id)
    await broker.inbox.answer(asked.id, Complete(value="frames=240"))
    found = await broker.inbox.get(asked.id)
    if found.state is Settlement.RESOLVED:
        assert text(await go_on(broker, slow, run_id)) == "frames=240"


async def test_what_no_call_is_is_refused(broker: AsyncBroker, bank: Connect) -> None:
    tools = Tools("bank", bank)
    for given in (None, {}, {"tool": 1}, {"tool": "pay", "arguments": []}):
        run_id = (await broker.start("bank", given, session="s")).run_id
        with pytest.raises(InvalidInput):
            await go_on(broker, tools, run_id)


# A server of one's own -------------------------------------------------------------------------------------------


async def asked_of(client: mcp.Client) -> tuple[str, str]:
    """The key and the state of a question."""
    asked = await client.session.call_tool("pay", {"account": "rent"}, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    (key,) = asked.input_requests or {}
    assert asked.request_state is not None
    return key, asked.request_state


async def send(client: mcp.Client, key: str, state: str, amount: int | None) -> str:
    """What a client is told that sends a state with an answer: a number, or a no."""
    said = {"action": "decline"} if amount is None else {"action": "accept", "content": {"amount": amount}}
    try:
        result = await client.session.call_tool(
            "pay", {"account": "rent"}, input_responses={key: types.ElicitResult.model_validate(said)},
            request_state=state,
        )  # fmt: skip
    except mcp.MCPError as error:
        return str(error)
    (content,) = result.content
    return str(content.text)


@pytest.mark.report("RB62")
@pytest.mark.parametrize("once", [True, False], ids=["single_use", "as_it_is"])
async def test_a_state_is_taken_once_by_all_processes_of_a_server(
    bank: Connect, world: World, *, once: bool
) -> None:
    """Without `SingleUse` the same state pays as often as it is sent, whatever was answered before."""
    async with bank(once=once) as client:
        key, state = await asked_of(client)
    told = []
    for amount in (3, 3, None, 99):
        async with bank(once=once) as client:
            told.append(await send(client, key, state, amount))
    given = [effect.given for effect in world.effects]
    if once:
        assert (told, given) == (["paid 3 of rent"] * 4, [3])
    else:
        assert given == [3, 3, 99]


async def test_two_equal_calls_are_two(bank: Connect, world: World) -> None:
    async with bank(once=True) as client:
        for _ in range(2):
            key, state = await asked_of(client)
            assert await send(client, key, state, 3) == "paid 3 of rent"
    assert len({effect.key for effect in world.effects}) == 2


async def test_of_two_at_once_one_is_told_that_the_state_is_in_use(bank: Connect, world: World) -> None:
    async with bank(once=True) as first, bank(once=True) as second:
        key, state = await asked_of(first)
        world.hold()
        going = asyncio.create_task(send(first, key, state, 3))

        async def happened() -> bool:
            return bool(world.effects)

        await await_until(happened, 60, what="the effect")
        assert await send(second, key, state, 3) == "This request state is in use"
        world.let_go()
        assert await going == "paid 3 of rent"
        assert await send(second, key, state, 3) == "paid 3 of rent"
    assert len(world.effects) == 1


async def test_a_process_that_dies_in_the_middle_leaves_the_round_to_the_next(
    bank: Connect, world: World
) -> None:
    """The tool runs again, under the key that it had: who compares keys does it once."""
    world.hold()
    key = state = ""
    with suppress(Exception):  # its connection is lost
        async with bank(once=True) as client:
            key, state = await asked_of(client)
            going = asyncio.create_task(send(client, key, state, 3))

            async def happened() -> bool:
                return bool(world.effects)

            await await_until(happened, 60, what="the effect")
            os.kill(world.effects[0].pid, signal.SIGKILL)
            await going
    world.let_go()
    async with bank(once=True) as client:

        async def taken() -> str | None:
            told = await send(client, key, state, 3)
            return None if told == "This request state is in use" else told

        assert await await_until(taken, 60, what="the lease of the dead one ends") == "paid 3 of rent"
    first, second = world.effects
    assert first.pid != second.pid
    assert first.key == second.key


async def test_a_state_that_is_too_old_is_refused(broker: AsyncBroker, bank: Connect, world: World) -> None:
    async with bank() as client:
        key, state = await asked_of(client)
    async with bank(once=True) as client:
        assert "not made for a single use" in await send(client, key, state, 3)
    with pytest.raises(InvalidInput, match="within"):
        _ = SingleUse(broker, within=timedelta(days=30))._longest
    assert SingleUse(broker, within=timedelta(minutes=5))._longest == timedelta(minutes=5)
    assert world.effects == []


# The broker's own server -----------------------------------------------------------------------------------------
