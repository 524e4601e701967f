"""The endpoint for AG-UI over real HTTP: pauses in one process are answered and gone on with in another."""

import asyncio
from asyncio import to_thread
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import pytest

from broker import AsyncBroker, BuildMismatch, Interrupt, RunState, Settlement
from broker.testing import await_until

from .agui_client import Sites, asked, no, pays, yes
from .child import AGENT
from .world import World


def test_approve(site: Sites, world: World) -> None:
    """Paused in one process, which is killed; answered to another one, under a new run id."""
    first = site()
    events = first.post("run-1", **pays(10))
    (one,) = asked(events)
    assert [event["type"] for event in events] == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]
    assert one["metadata"]["toolCall"]["args"] == {"amount": 10}
    assert world.effects == []
    first.kill()
    second = site()
    events = second.post("run-2", resume=[yes(one)])
    assert events[-1]["outcome"] == {"type": "success"}
    assert (events[-1]["runId"], events[-1]["result"]) == ("run-2", ["paid 10"])
    (effect,) = world.effects
    assert (effect.given, effect.pid) == (10, second.pid)


def test_reject(site: Sites, world: World) -> None:
    (one,) = asked(site().post("run-1", **pays(10)))
    events = site().post("run-2", resume=[no(one, "too much")])
    assert "too much" in events[-1]["result"][0]
    assert world.effects == []


def test_edit(site: Sites, world: World) -> None:
    (one,) = asked(site().post("run-1", **pays(10)))
    events = site().post("run-2", resume=[yes(one, editedArgs={"amount": 3})])
    assert events[-1].get("result") == ["paid 3"], events
    assert [effect.given for effect in world.effects] == [3]


@pytest.mark.report("RB20", "RB32")
def test_three_at_once(site: Sites, world: World) -> None:
    """All of them are answered at once, or none: what is left out is named."""
    first, second = site(), site()
    one, two, three = asked(first.post("run-1", **pays(1, 2, 3)))
    refused = second.post("run-2", resume=[yes(one), yes(three)])
    assert (refused[-1]["type"], refused[-1]["code"]) == ("RUN_ERROR", "PARTIAL_RESUME")
    assert two["id"] in refused[-1]["message"]
    events = second.post("run-3", resume=[yes(one), no(two, "not that one"), yes(three)])
    assert [text.partition(":")[0] for text in events[-1]["result"]] == [
        "paid 1",
        "Error (rejected)",
        "paid 3",
    ]
    assert sorted(effect.given for effect in world.effects) == [1, 3]


def test_duplicate(site: Sites, world: World) -> None:
    """A client that lost the reply sends the same again, to any process: it is told the same, and nothing runs."""
    first, second = site(), site()
    (one,) = asked(first.post("run-1", **pays(10)))
    assert asked(second.post("run-1", **pays(10))) == [one]
    came = [place.post("run-2", resume=[yes(one)])[-1] for place in (first, second, first)]
    assert [event["result"] for event in came] == [["paid 10"]] * 3
    assert len(world.effects) == 1


def test_flipped(site: Sites, world: World) -> None:
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    first.post("run-2", resume=[yes(one)])
    refused = site().post("run-3", resume=[no(one, "no, wait")])
    assert (refused[-1]["type"], refused[-1]["code"]) == ("RUN_ERROR", "conflict")
    assert len(world.effects) == 1


def test_unknown_id(site: Sites, world: World) -> None:
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    refused = first.post("run-2", resume=[yes(one | {"id": "int-nobody"})])
    assert refused[-1]["code"] == "UNKNOWN_INTERRUPT_ID"
    assert world.effects == []


@pytest.mark.parametrize(
    "payload", [{"approved": "yes"}, {"approved": None}, {}], ids=["text", "null", "empty"]
)
def test_wrong_shape(site: Sites, world: World, payload: dict[str, Any]) -> None:
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    wrong = {"interruptId": one["id"], "status": "resolved", "payload": payload}
    refused = first.post("run-2", resume=[wrong])
    assert (refused[-1]["code"], world.effects) == ("INVALID_PAYLOAD", [])
    assert first.post("run-3", resume=[yes(one)])[-1]["result"] == ["paid 10"]


def test_race(site: Sites, world: World) -> None:
    """The same answers to two processes at once: it runs once, and both clients are told the result."""
    places = [site(), site()]
    (one,) = asked(places[0].post("run-1", **pays(10)))
    with ThreadPoolExecutor(2) as pool:
        came = list(pool.map(lambda place: place.post("run-2", resume=[yes(one)]), places))
    assert [events[-1]["result"] for events in came] == [["paid 10"]] * 2
    assert len(world.effects) == 1


async def test_killed(site: Sites, world: World, broker: AsyncBroker) -> None:
    """Killed after the effect: the client sends the same again to another process, which repeats it under its key."""
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    world.hold()

    def lost() -> None:
        with suppress(httpx.HTTPError):
            first.post("run-2", resume=[yes(one)])

    waiting = asyncio.create_task(to_thread(lost))

    async def happened() -> bool:
        return len(world.effects) == 1

    await await_until(happened, 60, what="the effect")
    first.kill()
    await waiting
    world.let_go()
    events = await to_thread(site().post, "run-2", resume=[yes(one)])
    assert events[-1]["result"] == ["paid 10"]
    assert [effect.key for effect in world.effects] == [world.effects[0].key] * 2
    assert (await broker.inbox.get(one["id"])).state is Settlement.RESOLVED


@pytest.mark.report("RB18", "RB64")
def test_new_input(site: Sites, world: World) -> None:
    """Without the answers the open interrupts are named, and nothing is started."""
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    refused = first.post("run-2", **pays(7))
    assert refused[-1]["code"] == "PENDING_INTERRUPTS"
    assert one["id"] in refused[-1]["message"]
    assert world.effects == []


def test_who_answers_comes_from_the_request(site: Sites) -> None:
    first = site()
    assert httpx.post(first.url, json={}).status_code == 401
    refused = httpx.post(first.url, json={"threadId": ""}, headers={"authorization": "Bearer ada"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")


async def test_in_a_row_and_by_name(site: Sites, broker: AsyncBroker) -> None:
    """The answer is the party's whose request brought it."""
    first = site()
    (one,) = asked(await to_thread(first.post, "run-1", **pays(10)))
    await to_thread(first.post, "run-2", by="grace", resume=[yes(one)])
    resolution = (await broker.inbox.get(one["id"])).resolution
    assert resolution is not None
    assert resolution.by is not None
    assert (resolution.by.id, resolution.by.verified) == ("grace", True)


async def test_without_a_handler_it_waits_for_whoever_goes_on_with_the_run(
    site: Sites, broker: AsyncBroker
) -> None:
    listens = site(only_listens=True)

    async def taken() -> str:
        return next(iter(await broker.runs.ready("agents")), "")

    asking = asyncio.create_task(to_thread(listens.post, "run-1", **pays(10)))
    async with broker.take(await await_until(taken, 60, what="a run to take")) as run:
        await run.suspend(Interrupt(message="Go on?", reason="confirmation"))
    (one,) = asked(await asking)
    answer = {"interruptId": one["id"], "status": "resolved", "payload": "yes"}
    answering = asyncio.create_task(to_thread(listens.post, "run-2", resume=[answer]))
    async with broker.take(await await_until(taken, 60, what="the run again")) as run:
        await run.finish("done")
    assert (await answering)[-1]["result"] == "done"


async def test_a_process_that_is_told_to_end_gives_its_runs_back(
    site: Sites, world: World, broker: AsyncBroker
) -> None:
    """It counts as no attempt, and the client gets the rest from another process."""
    first = site()
    held = world.folder / "wait"
    held.touch()

    def cut_off() -> None:
        with suppress(AssertionError, httpx.HTTPError):
            first.post("run-1", **pays(10))

    async def leased() -> str:
        runs = [one.run_id for one in await broker.history("thread-1")]
        is_at_work = runs and (await broker.runs.get(runs[0])).state is RunState.LEASED
        return runs[0] if is_at_work else ""

    asking = asyncio.create_task(to_thread(cut_off))
    run_id = await await_until(leased, 60, what="the run is leased")
    first.process.terminate()
    assert await to_thread(first.exit_code) in (0, -15)
    await asking
    assert (await broker.runs.get(run_id)).state is RunState.READY
    held.unlink()
    (one,) = asked(await to_thread(site().post, "run-1", **pays(10)))
    assert one["metadata"]["toolCall"]["args"] == {"amount": 10}


async def test_a_process_that_was_asked_for_nothing_sweeps(site: Sites, broker: AsyncBroker) -> None:
    """A deadline passes although no request comes after a restart, and no worker is there."""
    started = await broker.start(AGENT, {}, session="thread-1")
    async with broker.take(started.run_id) as run:
        await run.suspend(Interrupt(message="Go on?", expires_in=timedelta(milliseconds=500)))
    (asked_id,) = (await broker.runs.get(started.run_id)).interrupt_ids

    async def expired() -> bool:
        return (await broker.inbox.get(asked_id)).state is not Settlement.OPEN

    await to_thread(site, only_listens=True)
    await await_until(expired, 60, what="the question has expired")


async def test_an_endpoint_of_another_build_leaves_the_run_to_its_own(
    site: Sites, broker: AsyncBroker
) -> None:
    """The client is told so, and waits where a process of the right build is at work. Off: `_may_take`."""
    pinned = {"session": "thread-1", "build": "one"}
    started = await broker.start(AGENT, {"state": {"amounts": []}}, **pinned)  # type: ignore[arg-type]
    async with broker.take(started.run_id) as run:
        await run.suspend(Interrupt(message="Go on?", reason="confirmation"))
    (asked_id,) = (await broker.runs.get(started.run_id)).interrupt_ids
    answer = {"interruptId": asked_id, "status": "resolved", "payload": "yes"}
    other, none, own = await asyncio.gather(*(to_thread(site, build=one) for one in ("two", None, "one")))
    for process in (other, none):
        refused = (await to_thread(process.post, "run-2", resume=[answer]))[-1]
        assert (refused["type"], refused["code"]) == ("RUN_ERROR", BuildMismatch.code)
    left = await broker.runs.get(started.run_id)
    assert (left.state, left.tries, left.fence, left.errors) == (RunState.READY, 0, 1, ())
    async with broker.take(started.run_id):
        asking = asyncio.create_task(to_thread(other.post, "run-2", resume=[answer]))
        done, _ = await asyncio.wait([asking], timeout=1)
        assert not done
    await asking
    assert (await to_thread(own.post, "run-2", resume=[answer]))[-1]["result"] == []
