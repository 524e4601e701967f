"""Gated functions are called like any other, inside a run that somebody works on."""

import asyncio
import inspect
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Broker, CallFailed, InvalidInput, Run, UnknownId, current_call
from broker.adapters.functions import gated, go_on, long_running, working_on

from .agents import pay, refund


@gated
async def add(left: int, /, right: int) -> int:
    return left + right


@gated(reviewers="ann")
async def key_of(name: str, **more: Any) -> str:
    return f"{name} {current_call().key} {more}"


@gated
@long_running
async def both(name: str) -> None:
    """Needs an approval, and then a completion."""


def test_a_function_looks_as_it_did() -> None:
    assert inspect.iscoroutinefunction(refund)
    assert not inspect.iscoroutinefunction(pay)
    assert list(inspect.signature(refund).parameters) == ["folder", "amount"]
    assert (both.__name__, both.__doc__) == ("both", "Needs an approval, and then a completion.")


async def test_outside_a_run_nothing_runs() -> None:
    with pytest.raises(UnknownId, match="run that is being worked on 'refund'"):
        await refund("/nowhere", 5)
    with pytest.raises(UnknownId, match="run that is being worked on 'pay'"):
        pay("/nowhere", 5)


async def test_calls_of_one_turn_are_asked_about_together(broker: AsyncBroker) -> None:
    async def handler(_: Run[Any]) -> tuple[str, str]:
        return await asyncio.gather(key_of("a", n=1), key_of("b", n=2))

    started = await broker.start("both", session="s")
    assert await go_on(broker, started.run_id, {"both": handler})
    paused = await broker.runs.get(started.run_id)
    for one in paused.interrupt_ids:
        asked = await broker.inbox.get(one)
        assert (asked.interrupt.reviewers, asked.interrupt.action is None) == (("ann",), False)
        assert (await broker.inbox.answer(one, Approve())).ok
    assert await go_on(broker, started.run_id, {"both": handler})
    first, second = (await broker.runs.get(started.run_id)).result
    assert (first.split()[0], second.split()[0]) == ("a", "b")
    assert first.split()[1] != second.split()[1]


async def test_code_that_holds_a_run_calls_them_too(broker: AsyncBroker) -> None:
    """By `adopt`, in a process that executes already; the pause leaves the block without an error."""
    async with broker.adopt("script", session="s", key="k") as run:
        with working_on(run):
            await key_of("a")
    waiting = await broker.runs.get(run.id)
    assert (await broker.inbox.answer(waiting.interrupt_ids[0], Approve())).ok
    async with broker.take(run.id) as run:
        with working_on(run):
            said = await key_of("a")
        await run.finish(said)
    assert (await broker.runs.get(run.id)).result.startswith("a ")


async def test_a_function_may_stand_in_a_list_of_tools_too(broker: AsyncBroker) -> None:
    asked = [{"id": "c1", "name": "key_of", "arguments": {"name": "a"}}]
    async with broker.adopt("loop", session="s", key="k") as run:
        await run.calls(asked, [key_of])
    assert (await broker.runs.get(run.id)).interrupt_ids


async def test_gated_and_long_running_is_both(broker: AsyncBroker) -> None:
    async with broker.adopt("script", session="s", key="k") as run:
        with working_on(run):
            await both("a")
    (only,) = (await broker.runs.get(run.id)).interrupt_ids
    assert (await broker.inbox.get(only)).interrupt.kind.type == "approval_pending"


async def test_what_cannot_be_asked_about_is_refused_and_nothing_runs(
    broker: AsyncBroker, blocking: Broker
) -> None:
    async with broker.adopt("script", session="s", key="k") as run:
        with working_on(run):
            with pytest.raises(InvalidInput, match="left has no name in a call"):
                await add(1, right=2)
            with pytest.raises(InvalidInput, match="pay is plain in an async run"):
                pay("/nowhere", 5)
            with pytest.raises(TypeError):
                await refund("/nowhere")  # type: ignore[call-arg]
            with pytest.raises(CallFailed, match="arguments"):
                await refund("/nowhere", object())  # type: ignore[arg-type]
        await run.finish()
    with blocking.adopt("script", session="s", key="k2") as held, working_on(held):
        with pytest.raises(InvalidInput, match="refund is plain in an async run, or async in a blocking one"):
            await refund("/nowhere", 5)
        held.finish()
