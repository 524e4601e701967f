"""Agents to be tried: each with a way of its own of dealing with a death, right or wrong."""

import os
from datetime import timedelta
from typing import Any

from broker import AnswerKind, Done, Doubt, Pending, Run, current_call, gated, long_running, tool
from broker.testing import effect, happened


async def pay_without_key(euros: int) -> str:
    effect("paid")
    return f"paid {euros}"


async def pay(euros: int) -> str:
    effect("paid", key=current_call().key)
    return f"paid {euros}"


async def pay_by_attempt(euros: int) -> str:
    effect("paid", key=f"{current_call().key}/{current_call().attempt}")
    return f"paid {euros}"


@gated(expires_in=timedelta(minutes=15), offers=(AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT))
async def cancel_booking(room: int) -> str:
    effect(f"cancelled {room}", key=current_call().key)
    return f"cancelled {room}"


@gated(expires_in=None)
async def call_back(number: str) -> str:
    effect(f"called {number}")
    return "called"


@long_running(expires_in=timedelta(hours=6))
async def film(room: int) -> Pending:
    effect("filming", key=current_call().key)
    return Pending(handle=f"film of {room}")


@tool(on_doubt=Doubt.ASK)
async def mail(to: str) -> str:
    effect("mailed")
    return f"mailed {to}"


async def was_charged(key: str) -> Done | None:
    return Done("paid") if happened("charged", key=key) else None


@tool(verify=was_charged)
async def charge_and_tell(euros: int) -> str:
    effect("charged", key=current_call().key)
    effect(f"told of {euros}", key=current_call().key)
    return "paid"


async def halving(run: Run[int]) -> Any:
    """A tool of two effects, of which it looks at the first one only."""
    return await run.call(charge_and_tell, {"euros": run.input})


async def wandering(run: Run[int]) -> Any:
    """Another step in each process."""
    return await run.step(abs, run.input, key=f"in {os.getpid()}")


async def careless(run: Run[int]) -> Any:
    """Pays, without a key."""
    return await run.call(pay_without_key, {"euros": run.input})


async def careful(run: Run[int]) -> Any:
    """Pays, under its key."""
    return await run.call(pay, {"euros": run.input})


async def mistaken(run: Run[int]) -> Any:
    """Pays under a key that changes with the attempt."""
    return await run.call(pay_by_attempt, {"euros": run.input})


async def outside(run: Run[int]) -> Any:
    """Does something between two calls of the journal, where it happens at each entry."""
    await run.call(pay, {"euros": run.input})
    effect("told the customer")
    return await run.call(pay, {"euros": 1})


async def counting(run: Run[Any]) -> int:
    """Its result depends on the attempt."""
    await run.call(pay, {"euros": 1})
    return run.attempt


async def booking(run: Run[list[int]]) -> list[str]:
    """A turn of several gated calls, then a job elsewhere."""
    asked = [{"id": f"c{room}", "name": "cancel_booking", "arguments": {"room": room}} for room in run.input]
    said = await run.calls(asked, [cancel_booking])
    ended = await run.call(film, {"room": run.input[0]}, call_id="film")
    return [*(one["content"] for one in said), ended]


async def cancelling(run: Run[int]) -> Any:
    """One gated call, as a message."""
    asked = [{"id": "c1", "name": "cancel_booking", "arguments": {"room": run.input}}]
    return (await run.calls(asked, [cancel_booking]))[0]["content"]


async def calling(run: Run[str]) -> Any:
    """One gated call that has no deadline."""
    return await run.call(call_back, {"number": run.input}, call_id="c1")


async def mailing(run: Run[str]) -> Any:
    """A call about which a person is asked after a death."""
    return await run.call(mail, {"to": run.input}, call_id="c1")


def blocking(run: Any) -> Any:
    """A plain function."""

    def post(to: str) -> str:
        effect("posted", key=current_call().key)
        return f"posted to {to}"

    return run.call(post, {"to": run.input})


class Support:
    """An agent that is an object, as those of frameworks are."""

    def __init__(self, greeting: str) -> None:
        self._greeting = greeting

    async def resume(self, run: Run[str]) -> str:
        return f"{self._greeting}, {run.input}"


support = Support("hello")


async def failing(_: Run[Any]) -> None:
    """Comes to nothing."""
    raise LookupError("no such room")
