"""Long-running calls, in this colour: written down before they start, completed by token whenever, once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Cancel,
    InvalidInput,
    Outcome,
    Parked,
    Pending,
    Replayed,
    RunState,
    Unknown,
    current_call,
    gated,
    long_running,
    tool,
)
from broker.testing import RunningServer
from tests.clock import Clock
from tests.journal.asked import call
from tests.journal.records import Records

from ._runtime import Run
from .journaling import Agent, Model, loop, talking


class Studio:
    """Where jobs run: what it was asked to do, and what the journal had of the call at that moment."""

    def __init__(self, look: Callable[[str], Any]) -> None:
        self.look = look
        self.jobs: list[tuple[str, str, str]] = []
        self.seen: list[Any] = []

    def submit(self, prompt: str) -> Pending:
        """Takes a job."""
        known = current_call()
        self.jobs.append((prompt, known.key, known.token))
        self.seen.append(self.look(known.id))
        return Pending(handle=f"j-{len(self.jobs)}")

    @property
    def tokens(self) -> list[str]:
        return [token for _, _, token in self.jobs]

    @property
    def tool(self) -> Any:
        @long_running(expires_in=timedelta(hours=6))
        async def render(prompt: str) -> Pending:
            return self.submit(prompt)

        return render

    @property
    def gated(self) -> Any:
        @gated
        @long_running
        async def render(prompt: str) -> Pending:
            return self.submit(prompt)

        return render


@pytest.fixture
def records(server: RunningServer, namespace: str) -> Records:
    return Records(server.url, namespace)


@pytest.fixture
def studio(records: Records) -> Studio:
    return Studio(records.call)


@pytest.fixture
def agent(timed: AsyncBroker, clock: Clock, studio: Studio) -> Agent:
    """An agent that wants one video."""
    return Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[studio.tool]))


@pytest.mark.report("RB29")
async def test_a_job_is_known_before_it_starts_and_its_handle_after(
    agent: Agent, studio: Studio, records: Records
) -> None:
    """A16, rule 29: token and key exist before the start."""
    assert await agent.start() is RunState.WAITING
    assert studio.seen == [("awaiting_completion", None)]
    assert records.call("c1") == ("awaiting_completion", "j-1")
    ((prompt, key, token),) = studio.jobs
    assert (prompt, key) == ("a cat", f"{agent.run_id}:c1")
    (record,) = (await agent.asked()).values()
    assert (record.interrupt.audience, record.interrupt.pending_handle) == ("completions", "j-1")
    assert record.deadline is not None
    assert record.deadline - record.opened_at == timedelta(hours=6)
    assert isinstance(await agent.broker.complete(token, {"asset": "v-9"}), Accepted)
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ['{"asset": "v-9"}']
    assert len(studio.jobs) == 1


async def test_a_tool_may_change_what_it_is_given_and_no_record_changes_with_it(
    timed: AsyncBroker, clock: Clock
) -> None:
    """Its question is written behind it. Off: the copy in `_made`."""

    @long_running
    async def render(scenes: list[str]) -> Pending:
        scenes.append("a dog")
        return Pending(handle="j-1")

    async def handler(run: Run[Any]) -> Any:
        return await run.call(render, {"scenes": ["a cat"]}, call_id="c1")

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    action = (await agent.asked())["c1"].interrupt.action
    assert action is not None
    assert action.arguments == {"scenes": ["a cat"]}


@pytest.mark.report("RB62")
async def test_RB62_a_completion_counts_once(agent: Agent, studio: Studio) -> None:
    """A15: the second one is told who was first; the same one again is a repeat; also when the run has gone on.

    Off: guard `decided` of answer.lua.
    """
    await agent.start()
    (token,) = studio.tokens
    first = await agent.broker.complete(token, 1)
    again = await agent.broker.complete(token, 1)
    other = await agent.broker.complete(token, 2)
    assert isinstance(first, Accepted)
    assert isinstance(again, Replayed)
    assert isinstance(other, AlreadyDecided)
    await agent.go()
    assert isinstance(await agent.broker.complete(token, 1), Replayed)
    assert isinstance(await agent.broker.fail(token, "late"), AlreadyDecided)
    assert await agent.result() == ["1"]


async def test_a_job_that_failed_says_so(agent: Agent, studio: Studio) -> None:
    await agent.start()
    await agent.broker.fail(studio.tokens[0], "out of film")
    await agent.go()
    assert await agent.result() == ["Error (failed): out of film"]


async def test_a_job_nobody_completes_fails(agent: Agent, studio: Studio) -> None:
    """It may still end; that it was not run is not said."""
    await agent.start()
    agent.clock.advance(timedelta(hours=7))
    outcome = await agent.broker.complete(studio.tokens[0], 1)
    assert outcome.code == "expired"
    await agent.go()
    assert await agent.result() == ["Error (expired): Nobody answered in time. It was started."]


async def test_a_job_that_is_given_up_says_by_whom(agent: Agent) -> None:
    await agent.start()
    await agent.answer("c1", Cancel(reason="too dear"))
    await agent.go()
    assert await agent.result() == ["Error (cancelled): Given up by me: too dear. It was started."]


async def test_F41_a_token_is_for_one_call(agent: Agent, studio: Studio) -> None:
    """It cannot be guessed, and is no handle. Off: the comparison with the stored token (`AsyncBroker._said`)."""
    await agent.start()
    (token,) = studio.tokens
    with pytest.raises(InvalidInput):
        await agent.broker.complete("tok_" + token[5:-3], 1)
    forged = token[:-6] + ("AAAAAA" if token[-6:] != "AAAAAA" else "BBBBBB")
    assert isinstance(await agent.broker.complete(forged, 1), Unknown)
    assert (await agent.broker.complete(token, 1)).ok


async def test_a_token_of_a_closed_run_is_unknown(agent: Agent, studio: Studio) -> None:
    await agent.start()
    await agent.broker.runs.withdraw(agent.run_id, reason="moot")
    assert (await agent.broker.complete(studio.tokens[0], 1)).code == "withdrawn"


async def complete_at_once(studio: Studio, broker: AsyncBroker, said: list[Outcome]) -> Any:
    """A tool whose job ends before its start has returned."""

    @long_running
    async def render(prompt: str) -> Pending:
        pending = studio.submit(prompt)
        said.append(await broker.complete(current_call().token, {"asset": prompt}))
        return pending

    return render


async def test_a_completion_before_the_pause_is_kept(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """Rule 10: the run is ready again as soon as it has paused."""
    said: list[Outcome] = []
    render = await complete_at_once(studio, timed, said)
    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await agent.start() is RunState.READY
    assert isinstance(said[0], Parked)
    assert isinstance(await timed.complete(studio.tokens[0], {"asset": "a cat"}), Replayed)
    assert isinstance(await timed.complete(studio.tokens[0], "other"), AlreadyDecided)
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ['{"asset": "a cat"}']
    assert len(studio.jobs) == 1


async def test_a_completion_outlives_the_worker_that_started_it(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """The worker dies between start and pause, the job is completed, and hours pass: it is not started again."""

    @long_running
    async def render(prompt: str) -> Pending:
        pending = studio.submit(prompt)
        if prompt:
            mine.die()
        return pending

    mine = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await mine.start() is RunState.LEASED
    assert isinstance(await timed.complete(studio.tokens[0], "v-9"), Parked)
    clock.advance(timedelta(hours=3))
    assert await mine.go() is RunState.READY
    assert await mine.go() is RunState.FINISHED
    assert (await mine.result(), len(studio.jobs)) == (["v-9"], 1)


async def test_a_failure_to_start_does_not_undo_a_completion(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """Rule 30: the reply to the start was lost, and the job ended well."""

    @long_running
    async def render(prompt: str) -> Pending:
        studio.submit(prompt)
        await timed.complete(current_call().token, "v-9")
        raise ConnectionError("the studio does not reply")

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await agent.start() is RunState.READY
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["v-9"]


@pytest.mark.report("RB45")
async def test_RB45_a_job_that_does_not_start_has_failed(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """It waits for nobody. Off: a failure of a long-running tool taken for `Pending` (`Calling._made`)."""

    @long_running
    async def render(prompt: str) -> Pending:
        studio.submit(prompt)
        raise ConnectionError("closed")

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await agent.start() is RunState.FINISHED
    assert await agent.result() == ["Error (ConnectionError): closed"]
    assert isinstance(await timed.complete(studio.tokens[0], 1), Unknown)


async def test_a_job_that_is_done_at_once_needs_no_pause(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    @long_running
    async def render(prompt: str) -> Any:
        return f"{prompt}, from the cache"

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await agent.start() is RunState.FINISHED
    assert (await agent.result(), studio.jobs) == (["a cat, from the cache"], [])


async def test_only_a_long_running_tool_may_be_pending(timed: AsyncBroker, clock: Clock) -> None:
    @tool()
    async def render() -> Pending:
        return Pending(handle="j")

    @long_running
    async def handled() -> Pending:
        return Pending(handle=object())

    turn = [call("c1", "render"), call("c2", "handled")]
    agent = Agent(timed, clock, talking(turn, tools=[render, handled]))
    assert await agent.start() is RunState.FINISHED
    first, second = await agent.result()
    assert first.startswith("Error (InvalidInput): result is Pending")
    assert second.startswith("Error (InvalidInput): handle ")


async def test_a_handle_may_be_null(timed: AsyncBroker, clock: Clock, studio: Studio) -> None:
    @long_running
    async def render(prompt: str) -> Pending:
        studio.submit(prompt)
        return Pending()

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert await agent.start() is RunState.WAITING
    await timed.complete(studio.tokens[0], 1)
    assert await agent.go() is RunState.FINISHED
    assert len(studio.jobs) == 1


@pytest.mark.report("RB35")
async def test_RB35_a_gated_job_waits_twice(
    timed: AsyncBroker, clock: Clock, studio: Studio, records: Records
) -> None:
    """A17: confirmation, completion, resolved. Off: `after` of begin.lua without `long`."""
    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[studio.gated]))
    assert await agent.start() is RunState.WAITING
    states = [records.call("c1")[0]]
    assert studio.jobs == []
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.WAITING
    states.append(records.call("c1")[0])
    assert list(await agent.asked()) == ["c1"]
    await timed.complete(studio.tokens[0], "v-9")
    states.append(records.call("c1")[0])
    assert states == ["awaiting_confirmation", "awaiting_completion", "resolved"]
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(studio.jobs)) == (["v-9"], 1)


@pytest.mark.report("RB41", "RB46")
async def test_RB41_RB46_several_jobs_of_one_turn_resume_it_once(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """A27: results are stored as they come, and the run goes on after the last.

    Off: guard `complete` of the prelude without its condition.
    """
    turn = [call(f"c{n}", "render", prompt=str(n)) for n in range(3)]
    entered: list[int] = []
    model = Model(turn)

    async def handler(run: Run[Any]) -> list[Any]:
        entered.append(run.seq)
        return await loop(run, model, [studio.tool])

    agent = Agent(timed, clock, handler)
    await agent.start()
    order = sorted(studio.jobs)
    for n in (2, 0):
        assert isinstance(await timed.complete(order[n][2], n), Accepted)
        assert (await agent.record()).state is RunState.WAITING
    await timed.complete(order[1][2], 1)
    assert (await agent.record()).state is RunState.READY
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["0", "1", "2"]
    assert (entered, len(studio.jobs), model.asked) == ([0, 1], 3, 2)


async def test_more_questions_than_a_pause_may_have(timed: AsyncBroker, clock: Clock, studio: Studio) -> None:
    """Jobs under way come first; what was completed meanwhile is found when it is asked about."""
    turn = [call(f"c{n}", "render", prompt=str(n)) for n in range(70)]
    agent = Agent(timed, clock, talking(turn, tools=[studio.tool]))
    assert await agent.start() is RunState.WAITING
    for prompt, _, token in studio.jobs:
        assert (await timed.complete(token, prompt)).ok
    assert await agent.go() is RunState.READY
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == [str(n) for n in range(70)]
    assert len(studio.jobs) == 70


async def test_an_id_that_comes_again_behind_a_checkpoint_is_another_call(
    timed: AsyncBroker, clock: Clock, studio: Studio
) -> None:
    """Its key and its token are others, and what completed the first one says nothing of it."""

    async def handler(run: Run[Any]) -> list[Any]:
        found: list[Any] = run.checkpointed or []
        while len(found) < 2:
            found.append(await run.call(studio.tool, {"prompt": "a cat"}, call_id="c1"))
            await run.checkpoint(found)
        return found

    agent = Agent(timed, clock, handler)
    await agent.start()
    await timed.complete(studio.tokens[0], "first")
    assert await agent.go() is RunState.WAITING
    first, second = studio.jobs
    assert (first[1], second[1]) == (f"{agent.run_id}:c1", f"{agent.run_id}:1/c1")
    assert isinstance(await timed.complete(studio.tokens[0], "first"), Unknown)
    await timed.complete(studio.tokens[1], "second")
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["first", "second"]
