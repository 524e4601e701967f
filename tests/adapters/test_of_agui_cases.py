"""The cases of the suite over AG-UI, beside those of `test_of_agui.py`. A test's name is the case's id."""

import asyncio
from asyncio import to_thread
from typing import Any

import pytest

from broker import AsyncBroker, RunState, Settlement
from broker.testing import ServerProcess, await_until

from .agui_client import Sites, asked, cancelled, no, pays, refusal, yes
from .world import World


def answered(one: dict[str, Any], payload: Any) -> dict[str, Any]:
    return {"interruptId": one["id"], "status": "resolved", "payload": payload}


def amounts(world: World) -> list[Any]:
    return sorted(effect.given for effect in world.effects)


def test_external(site: Sites) -> None:
    """The job that a call has started elsewhere is done; its result comes as an answer, to another process."""
    (one,) = asked(site(scenario="external").post("run-1"))
    assert (
        site(scenario="external").post("run-2", resume=[answered(one, "frames=240")])[-1]["result"]
        == "frames=240"
    )


def test_in_a_row(site: Sites, world: World) -> None:
    first, second = site(scenario="in_a_row"), site(scenario="in_a_row")
    (one,) = asked(first.post("run-1", **pays(10, 10)))
    (two,) = asked(second.post("run-2", resume=[yes(one)]))
    assert one["id"] != two["id"]
    assert amounts(world) == [10]
    assert first.post("run-3", resume=[yes(two)])[-1]["result"] == ["paid 10", "paid 10"]
    assert len({effect.key for effect in world.effects}) == len(world.effects) == 2


@pytest.mark.cannot("three_one_by_one")
def test_one_resume_answers_all_that_is_open(site: Sites, world: World) -> None:
    """Whichever is left out is named, and nothing is answered."""
    first = site()
    open_ones = asked(first.post("run-1", **pays(1, 2, 3)))
    for n, one in enumerate(open_ones):
        refused = first.post(f"run-{n + 2}", resume=[yes(one)])
        assert refusal(refused) == "PARTIAL_RESUME"
        assert all(other["id"] in refused[-1]["message"] for other in open_ones if other is not one)
    assert world.effects == []
    assert asked(site().post("run-1", **pays(1, 2, 3))) == open_ones


def test_late(site: Sites, world: World) -> None:
    first = site()
    (one,) = asked(first.post("run-1", **pays(10)))
    first.post("run-2", resume=[no(one, "too much")])
    assert refusal(site().post("run-3", resume=[yes(one)])) == "conflict"
    assert world.effects == []


def test_wrong_kind(site: Sites, world: World) -> None:
    """Nobody may leave this question unanswered."""
    first = site(scenario="yes_or_no")
    (one,) = asked(first.post("run-1"))
    assert refusal(first.post("run-2", resume=[cancelled(one)])) == "NOT_OFFERED"
    assert asked(site(scenario="yes_or_no").post("run-1")) == [one]
    assert world.effects == []


@pytest.mark.parametrize("value", [None, False, {}, ""], ids=["None", "False", "map", "text"])
def test_empty_answers(site: Sites, value: object) -> None:
    (one,) = asked(site(scenario="question").post("run-1"))
    ended = site(scenario="question").post("run-2", resume=[answered(one, value)])[-1]
    assert (ended["outcome"]["type"], ended.get("result")) == ("success", value)


def test_nested(site: Sites, world: World) -> None:
    """Agents inside of the agent that make the same call: each question has an id of its own."""
    one, two = asked(site(scenario="nested").post("run-1"))
    assert one["id"] != two["id"]
    ended = site(scenario="nested").post("run-2", resume=[yes(one), no(two, "not you")])[-1]
    assert "paid 10" in ended["result"]
    assert "not you" in "".join(ended["result"])
    assert amounts(world) == [10]


@pytest.mark.cannot("other_build")
async def test_a_process_of_another_version_runs_nothing(
    site: Sites, world: World, broker: AsyncBroker
) -> None:
    """The run is set aside with its answer, and goes on where the agent is as it was."""
    (one,) = asked(await to_thread(site().post, "run-1", **pays(10)))
    other = await to_thread(site, fee=1)
    assert refusal(await to_thread(other.post, "run-2", resume=[yes(one)])) == "dead"
    record = await broker.inbox.get(one["id"])
    run = await broker.runs.get(record.run_id)
    assert (run.state, record.state, world.effects) == (RunState.DEAD, Settlement.RESOLVED, [])
    await broker.dead.requeue(run.id)
    same = await to_thread(site)
    assert (await to_thread(same.post, "run-2", resume=[yes(one)]))[-1]["result"] == ["paid 10"]


@pytest.mark.parametrize("case", ["unreadable", "too_large", "unserializable"])
async def test_a_pause_that_cannot_be_stored(
    site: Sites, world: World, broker: AsyncBroker, request: pytest.FixtureRequest, case: str
) -> None:
    """The client is told that the run failed; nobody is asked anything."""
    request.node.add_marker(pytest.mark.cannot(case))
    scenario = {"too_large": "large"}.get(case, case)
    place = await to_thread(site, scenario=scenario)
    assert refusal(await to_thread(place.post, "run-1")) == "dead"
    assert (await broker.inbox.list()).items == ()
    (dead,) = await broker.dead.list()
    assert {"too_large": "bytes", "unreadable": "surrogate"}.get(case, "builtin") in dead.errors[0]
    assert world.effects == []


async def test_expired(site: Sites, world: World, broker: AsyncBroker) -> None:
    """A yes comes too late; the client may only take note, and the agent is told that nobody answered.

    No worker is there: the processes of the site sweep.
    """
    first, second = await asyncio.gather(*(to_thread(site, seconds=0.5) for _ in range(2)))
    (one,) = asked(await to_thread(first.post, "run-1", **pays(10)))
    assert one["expiresAt"]

    async def expired() -> bool:
        return (await broker.inbox.get(one["id"])).state is Settlement.EXPIRED

    await await_until(expired, 60, what="the question has expired")
    assert refusal(await to_thread(second.post, "run-2", resume=[yes(one)])) == "INTERRUPT_EXPIRED"
    ended = (await to_thread(second.post, "run-3", resume=[cancelled(one)]))[-1]
    assert "Nobody answered" in ended["result"][0]
    assert world.effects == []


def restarted(site: Sites, own: ServerProcess, *, empty: bool) -> dict[str, Any]:
    """A question on a server of one's own, which is restarted then, with or without what it had stored."""
    first = site(url=own.url)
    (one,) = asked(first.post("run-1", **pays(10)))
    first.kill()
    own.stop()
    if empty:
        for kept in (*own.directory.glob("appendonlydir/*"), *own.directory.glob("*.rdb")):
            kept.unlink()
    own.start()
    return one


def test_restart(site: Sites, world: World, own_server: ServerProcess) -> None:
    one = restarted(site, own_server, empty=False)
    assert site(url=own_server.url).post("run-2", resume=[yes(one)])[-1]["result"] == ["paid 10"]
    assert amounts(world) == [10]


def test_restart_empty(site: Sites, world: World, own_server: ServerProcess) -> None:
    one = restarted(site, own_server, empty=True)
    assert refusal(site(url=own_server.url).post("run-2", resume=[yes(one)])) == "UNKNOWN_INTERRUPT_ID"
    assert world.effects == []


def test_changed_arguments(site: Sites, world: World) -> None:
    """What comes beside the answer changes nothing; an agent that makes another call of it makes none."""
    (one,) = asked(site().post("run-1", **pays(10)))
    assert refusal(site(fee=990).post("run-2", **pays(1_000), resume=[yes(one)])) == "dead"
    assert world.effects == []
    (two,) = asked(site().post("run-3", threadId="thread-2", **pays(10)))
    ended = site().post("run-4", threadId="thread-2", **pays(1_000), resume=[yes(two)])[-1]
    assert (ended["result"], amounts(world)) == (["paid 10"], [10])


def test_swallowed(site: Sites, world: World) -> None:
    (one,) = asked(site(scenario="swallow").post("run-1", **pays(10)))
    assert world.effects == []
    assert site(scenario="swallow").post("run-2", resume=[yes(one)])[-1]["result"] == ["paid 10"]
    assert amounts(world) == [10]
