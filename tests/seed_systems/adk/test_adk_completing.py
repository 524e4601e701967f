"""Long-running calls: known before they start, completed once, by the right name."""

from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    AlreadyDecided,
    AsyncBroker,
    Pending,
    Replayed,
    Run,
    RunState,
    Unknown,
    current_call,
    gated,
    long_running,
)
from broker.interop import adk
from broker.testing import RunningServer
from tests.clients._async.journaling import Agent
from tests.clock import Clock
from tests.journal.asked import call
from tests.journal.records import Records

from .script import Player, completion, error, value

VIDEO = {"asset": "v-9"}


class Studio:
    """Where jobs run, and what was on record of each call at its start."""

    def __init__(self, session: Callable[[], adk.AsyncAgentSession]) -> None:
        self.session = session
        self.jobs: list[str] = []
        self.seen: list[Any] = []

    async def start(self, name: str) -> Pending:
        self.jobs.append(name)
        frozen = await self.session().load()
        self.seen.append(frozen.disposition.to_json() if frozen is not None else None)
        return Pending(handle=f"j-{len(self.jobs)}")

    @property
    def tools(self) -> list[Any]:
        @long_running
        async def render_video(prompt: str) -> Pending:
            return await self.start(prompt)

        @gated
        @long_running
        async def shoot_film(script: str) -> Pending:
            return await self.start(script)

        return [render_video, shoot_film]


@pytest.fixture
def player(timed: AsyncBroker, clock: Clock, host: AsyncBroker) -> Player:
    """A script that renders one video. `did` is what was on record of its call at the start."""
    made: list[Player] = []
    studio = Studio(lambda: adk.AsyncAgentSession(host, "s", "airline", run_id=made[0].run_id))
    made.append(Player(timed, clock, studio.tools, ("render_video", {"prompt": "a cat"})))
    made[0].did = studio.seen
    return made[0]


def at(host: AsyncBroker) -> adk.AsyncAgentSession:
    return adk.AsyncAgentSession(host, "s", "airline")


async def dispositions(session: adk.AsyncAgentSession) -> Any:
    found = await session.load()
    assert found is not None
    return found.disposition.to_json()


@pytest.mark.row("A16")
async def test_a_start_is_on_record_before_it_and_its_handle_after(player: Player, host: AsyncBroker) -> None:
    assert await player.start() is RunState.WAITING
    assert player.did == [{"kind": "awaiting_completion"}]
    assert await dispositions(at(host)) == {"kind": "awaiting_completion", "pending_handle": "j-1"}


@pytest.mark.row("A14", "A15")
async def test_the_first_result_of_a_call_is_its_result(player: Player, host: AsyncBroker) -> None:
    """A second one is told what is stored, while its run waits and after."""
    await player.start()
    session = adk.AsyncAgentSession(host, "s", "airline", run_id=player.run_id)
    first = await session.complete(completion("render_video", VIDEO, "7"))
    again = await session.complete(completion("render_video", VIDEO, "7"))
    other = await session.complete(completion("render_video", {"asset": "v-10"}, "7"))
    assert (first.told[0].accepted, first.have, first.released) == (True, ("7",), True)
    assert isinstance(again.told[0].outcome, Replayed)
    assert isinstance(other.told[0].outcome, AlreadyDecided)
    assert not other.told[0].accepted
    for one in (first, again, other):
        assert one.told[0].stored is not None
        assert one.told[0].stored.to_json() == value(VIDEO)
    assert await dispositions(session) == value(VIDEO)
    assert await player.go() is RunState.FINISHED
    assert await player.result() == [value(VIDEO)]
    late = (await session.complete(completion("render_video", None, "7"))).told[0]
    assert (late.accepted, late.stored) == (False, other.told[0].stored)


@pytest.mark.row("A15", "A16")
async def test_a_job_may_be_done_before_its_start_has_returned(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker
) -> None:
    """Its result stands on record before the question; what the start returns does not undo it."""
    seen: list[Any] = []

    @long_running
    async def render_video(prompt: str) -> Pending:
        await host.complete(current_call().token, VIDEO)
        seen.append(await dispositions(adk.AsyncAgentSession(host, "s", "airline", run_id=made.run_id)))
        return Pending(handle=prompt)

    made = Player(timed, clock, [render_video], ("render_video", {"prompt": "a cat"}))
    assert await made.start() is RunState.READY
    assert await made.go() is RunState.FINISHED
    assert (seen, await made.result()) == ([value(VIDEO)], [value(VIDEO)])


@pytest.mark.row("A15")
async def test_a_result_that_was_used_long_ago_is_told_to_whoever_sends_another(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker
) -> None:
    """The script waits with its next call, and its checkpoint has taken the place of the first. Off: `_past`."""

    @long_running
    async def render_video(prompt: str) -> Pending:
        return Pending(handle=prompt)

    lines = (("render_video", {"prompt": "a cat"}), ("render_video", {"prompt": "a dog"}))
    player = Player(timed, clock, [render_video], *lines)
    await player.start()
    session = at(host)
    await session.complete(completion("render_video", VIDEO, "7"))
    assert await player.go() is RunState.WAITING
    (late,) = (await session.complete(completion("render_video", "other", "7"))).told
    assert isinstance(late.outcome, AlreadyDecided)
    assert (late.accepted, late.stored) == (False, adk.Resolved(record=adk.Value(value=VIDEO)))
    await session.complete(completion("render_video", 8, "8"))
    assert await player.go() is RunState.FINISHED
    assert await player.result() == [value(VIDEO), value(8)]


@pytest.mark.row("A14")
@pytest.mark.parametrize(
    "message",
    [
        completion("render_video", VIDEO, "8"),
        completion("render_video", VIDEO, "07"),
        completion("shoot_film", VIDEO, "7"),
        completion("shoot_film", VIDEO),
        completion("render", VIDEO),
    ],
)
async def test_a_result_of_something_else_is_reported_and_changes_nothing(
    player: Player, host: AsyncBroker, message: dict[str, Any]
) -> None:
    """Off: the comparison of names in `AsyncAgentSession._say`."""
    await player.start()
    done = await at(host).complete(message)
    assert isinstance(done.told[0].outcome, Unknown)
    assert (done.waiting, done.have, done.released) == (("7",), (), False)
    assert (await player.record()).state is RunState.WAITING


@pytest.mark.row("A14")
async def test_a_result_by_name_alone_is_that_of_the_one_call_that_waits(
    player: Player, host: AsyncBroker
) -> None:
    await player.start()
    done = await at(host).complete(completion("render_video", VIDEO))
    assert (done.told[0].call_id, done.told[0].accepted) == ("7", True)
    assert await player.go() is RunState.FINISHED
    assert await player.result() == [value(VIDEO)]


@pytest.fixture
def turn(timed: AsyncBroker, clock: Clock) -> Agent:
    """An agent driven by a model, with two renderings in one turn."""

    @long_running
    async def render_video(prompt: str) -> Pending:
        return Pending(handle=prompt)

    async def handler(run: Run[Any]) -> Any:
        asked = [call(one, "render_video", prompt=one) for one in ("12", "13")]
        return [message["content"] for message in await run.calls(asked, [render_video])]

    return Agent(timed, clock, handler)


@pytest.mark.row("A14", "A27")
async def test_several_jobs_of_a_turn_resume_it_once_after_the_last(turn: Agent, host: AsyncBroker) -> None:
    """By name alone none of two is meant; each result is stored as it comes."""
    await turn.start()
    session = at(host)
    unnamed = await session.complete(completion("render_video", VIDEO))
    assert (unnamed.told[0].outcome, unnamed.have) == (Unknown(id="render_video"), ())
    first = await session.complete(completion("render_video", VIDEO, "12"))
    assert (first.waiting, first.have, first.released) == (("12", "13"), ("12",), False)
    assert (await turn.record()).state is RunState.WAITING
    last = await session.complete(completion("render_video", 13))
    assert (last.told[0].call_id, last.have, last.released) == ("13", ("12", "13"), True)
    assert await turn.go() is RunState.FINISHED
    assert await turn.result() == ['{"asset": "v-9"}', "13"]
    assert (await turn.record()).seq == 1


@pytest.mark.row("A17")
async def test_a_gated_job_waits_for_its_confirmation_and_then_for_its_end(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker
) -> None:
    """What its start returns is never its result."""
    studio = Studio(lambda: at(host))
    player = Player(timed, clock, studio.tools, ("shoot_film", {"script": "a dog"}))
    await player.start()
    session = adk.AsyncAgentSession(host, "s", "airline", run_id=player.run_id)
    states = [await dispositions(session)]
    assert not (await session.complete(completion("shoot_film", "early", "7"))).told[0].accepted
    assert studio.jobs == []
    await session.decide(*adk.Decision.all_of({"7": "approve"}))
    assert await player.go() is RunState.WAITING
    states.append(await dispositions(session))
    await session.complete(completion("shoot_film", VIDEO, "7"))
    states.append(await dispositions(session))
    assert states == [
        {"kind": "awaiting_confirmation"},
        {"kind": "awaiting_completion", "pending_handle": "j-1"},
        value(VIDEO),
    ]
    assert await player.go() is RunState.FINISHED
    assert (await player.result(), studio.jobs) == ([value(VIDEO)], ["a dog"])


async def test_a_job_that_failed_raises_in_the_script(
    player: Player, host: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    await player.start()
    (asked,) = (await player.asked()).values()
    await host.fail(asked.id, "out of film")
    assert await dispositions(at(host)) == error("out of film")
    assert Records(server.url, namespace).call("7")[0] == "resolved"
    assert await player.go() is RunState.FINISHED
    assert await player.result() == [error("out of film")]


@pytest.mark.row("A15", "A25")
async def test_a_managed_result_completes_a_job(player: Player, host: AsyncBroker) -> None:
    await player.start()
    event = adk.CustomToolResult(custom_tool_use_id="7", content=[{"type": "text", "text": "done"}])
    told = await at(host).answer(event)
    assert (told.accepted, told.stored) == (True, adk.Resolved(record=adk.Value(value=event.content)))
    await player.go()
    assert await player.result() == [value(event.content)]
