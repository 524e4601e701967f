# Generated from tests/clients/_async/test_jobs.py by tests/tools/unasync.py (make sync): do not edit.
"""Long-running calls, in this colour: written down before they start, completed by token whenever, once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    Approve,
    Broker,
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
        def render(prompt: str) -> Pending:
            return self.submit(prompt)

        return render

    @property
    def gated(self) -> Any:
        @gated
        @long_running
        def render(prompt: str) -> Pending:
            return self.submit(prompt)

        return render


@pytest.fixture
def records(server: RunningServer, namespace: str) -> Records:
    return Records(server.url, namespace)


@pytest.fixture
def studio(records: Records) -> Studio:
    return Studio(records.call)


@pytest.fixture
def agent(timed: Broker, clock: Clock, studio: Studio) -> Agent:
    """An agent that wants one video."""
    return Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[studio.tool]))


@pytest.mark.report("RB29")
def test_a_job_is_known_before_it_starts_and_its_handle_after(
    agent: Agent, studio: Studio, records: Records
) -> None:
    """A16, rule 29: token and key exist before the start."""
    assert agent.start() is RunState.WAITING
    assert studio.seen == [("awaiting_completion", None)]
    assert records.call("c1") == ("awaiting_completion", "j-1")
    ((prompt, key, token),) = studio.jobs
    assert (prompt, key) == ("a cat", f"{agent.run_id}:c1")
    (record,) = (agent.asked()).values()
    assert (record.interrupt.audience, record.interrupt.pending_handle) == ("completions", "j-1")
    assert record.deadline is not None
    assert record.deadline - record.opened_at == timedelta(hours=6)
    assert isinstance(agent.broker.complete(token, {"asset": "v-9"}), Accepted)
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ['{"asset": "v-9"}']
    assert len(studio.jobs) == 1


def test_a_tool_may_change_what_it_is_given_and_no_record_changes_with_it(
    timed: Broker, clock: Clock
) -> None:
    """Its question is written behind it. Off: the copy in `_made`."""

    @long_running
    def render(scenes: list[str]) -> Pending:
        scenes.append("a dog")
        return Pending(handle="j-1")

    def handler(run: Run[Any]) -> Any:
        return run.call(render, {"scenes": ["a cat"]}, call_id="c1")

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.WAITING
    action = (agent.asked())["c1"].interrupt.action
    assert action is not None
    assert action.arguments == {"scenes": ["a cat"]}


@pytest.mark.report("RB62")
def test_RB62_a_completion_counts_once(agent: Agent, studio: Studio) -> None:
    """A15: the second one is told who was first; the same one again is a repeat; also when the run has gone on.

    Off: guard `decided` of answer.lua.
    """
    agent.start()
    (token,) = studio.tokens
    first = agent.broker.complete(token, 1)
    again = agent.broker.complete(token, 1)
    other = agent.broker.complete(token, 2)
    assert isinstance(first, Accepted)
    assert isinstance(again, Replayed)
    assert isinstance(other, AlreadyDecided)
    agent.go()
    assert isinstance(agent.broker.complete(token, 1), Replayed)
    assert isinstance(agent.broker.fail(token, "late"), AlreadyDecided)
    assert agent.result() == ["1"]


def test_a_job_that_failed_says_so(agent: Agent, studio: Studio) -> None:
    agent.start()
    agent.broker.fail(studio.tokens[0], "out of film")
    agent.go()
    assert agent.result() == ["Error (failed): out of film"]


def test_a_job_nobody_completes_fails(agent: Agent, studio: Studio) -> None:
    """It may still end; that it was not run is not said."""
    agent.start()
    agent.clock.advance(timedelta(hours=7))
    outcome = agent.broker.complete(studio.tokens[0], 1)
    assert outcome.code == "expired"
    agent.go()
    assert agent.result() == ["Error (expired): Nobody answered in time. It was started."]


def test_a_job_that_is_given_up_says_by_whom(agent: Agent) -> None:
    agent.start()
    agent.answer("c1", Cancel(reason="too dear"))
    agent.go()
    assert agent.result() == ["Error (cancelled): Given up by me: too dear. It was started."]


def test_F41_a_token_is_for_one_call(agent: Agent, studio: Studio) -> None:
    """It cannot be guessed, and is no handle. Off: the comparison with the stored token (`Broker._said`)."""
    agent.start()
    (token,) = studio.tokens
    with pytest.raises(InvalidInput):
        agent.broker.complete("tok_" + token[5:-3], 1)
    forged = token[:-6] + ("AAAAAA" if token[-6:] != "AAAAAA" else "BBBBBB")
    assert isinstance(agent.broker.complete(forged, 1), Unknown)
    assert (agent.broker.complete(token, 1)).ok


def test_a_token_of_a_closed_run_is_unknown(agent: Agent, studio: Studio) -> None:
    agent.start()
    agent.broker.runs.withdraw(agent.run_id, reason="moot")
    assert (agent.broker.complete(studio.tokens[0], 1)).code == "withdrawn"


def complete_at_once(studio: Studio, broker: Broker, said: list[Outcome]) -> Any:
    """A tool whose job ends before its start has returned."""

    @long_running
    def render(prompt: str) -> Pending:
        pending = studio.submit(prompt)
        said.append(broker.complete(current_call().token, {"asset": prompt}))
        return pending

    return render


def test_a_completion_before_the_pause_is_kept(timed: Broker, clock: Clock, studio: Studio) -> None:
    """Rule 10: the run is ready again as soon as it has paused."""
    said: list[Outcome] = []
    render = complete_at_once(studio, timed, said)
    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert agent.start() is RunState.READY
    assert isinstance(said[0], Parked)
    assert isinstance(timed.complete(studio.tokens[0], {"asset": "a cat"}), Replayed)
    assert isinstance(timed.complete(studio.tokens[0], "other"), AlreadyDecided)
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ['{"asset": "a cat"}']
    assert len(studio.jobs) == 1


def test_a_completion_outlives_the_worker_that_started_it(
    timed: Broker, clock: Clock, studio: Studio
) -> None:
    """The worker dies between start and pause, the job is completed, and hours pass: it is not started again."""

    @long_running
    def render(prompt: str) -> Pending:
        pending = studio.submit(prompt)
        if prompt:
            mine.die()
        return pending

    mine = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert mine.start() is RunState.LEASED
    assert isinstance(timed.complete(studio.tokens[0], "v-9"), Parked)
    clock.advance(timedelta(hours=3))
    assert mine.go() is RunState.READY
    assert mine.go() is RunState.FINISHED
    assert (mine.result(), len(studio.jobs)) == (["v-9"], 1)


def test_a_failure_to_start_does_not_undo_a_completion(timed: Broker, clock: Clock, studio: Studio) -> None:
    """Rule 30: the reply to the start was lost, and the job ended well."""

    @long_running
    def render(prompt: str) -> Pending:
        studio.submit(prompt)
        timed.complete(current_call().token, "v-9")
        raise ConnectionError("the studio does not reply")

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert agent.start() is RunState.READY
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ["v-9"]


@pytest.mark.report("RB45")
def test_RB45_a_job_that_does_not_start_has_failed(timed: Broker, clock: Clock, studio: Studio) -> None:
    """It waits for nobody. Off: a failure of a long-running tool taken for `Pending` (`Calling._made`)."""

    @long_running
    def render(prompt: str) -> Pending:
        studio.submit(prompt)
        raise ConnectionError("closed")

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert agent.start() is RunState.FINISHED
    assert agent.result() == ["Error (ConnectionError): closed"]
    assert isinstance(timed.complete(studio.tokens[0], 1), Unknown)


def test_a_job_that_is_done_at_once_needs_no_pause(timed: Broker, clock: Clock, studio: Studio) -> None:
    @long_running
    def render(prompt: str) -> Any:
        return f"{prompt}, from the cache"

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert agent.start() is RunState.FINISHED
    assert (agent.result(), studio.jobs) == (["a cat, from the cache"], [])


def test_only_a_long_running_tool_may_be_pending(timed: Broker, clock: Clock) -> None:
    @tool()
    def render() -> Pending:
        return Pending(handle="j")

    @long_running
    def handled() -> Pending:
        return Pending(handle=object())

    turn = [call("c1", "render"), call("c2", "handled")]
    agent = Agent(timed, clock, talking(turn, tools=[render, handled]))
    assert agent.start() is RunState.FINISHED
    first, second = agent.result()
    assert first.startswith("Error (InvalidInput): result is Pending")
    assert second.startswith("Error (InvalidInput): handle ")


def test_a_handle_may_be_null(timed: Broker, clock: Clock, studio: Studio) -> None:
    @long_running
    def render(prompt: str) -> Pending:
        studio.submit(prompt)
        return Pending()

    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[render]))
    assert agent.start() is RunState.WAITING
    timed.complete(studio.tokens[0], 1)
    assert agent.go() is RunState.FINISHED
    assert len(studio.jobs) == 1


@pytest.mark.report("RB35")
def test_RB35_a_gated_job_waits_twice(timed: Broker, clock: Clock, studio: Studio, records: Records) -> None:
    """A17: confirmation, completion, resolved. Off: `after` of begin.lua without `long`."""
    agent = Agent(timed, clock, talking([call("c1", "render", prompt="a cat")], tools=[studio.gated]))
    assert agent.start() is RunState.WAITING
    states = [records.call("c1")[0]]
    assert studio.jobs == []
    agent.answer("c1", Approve())
    assert agent.go() is RunState.WAITING
    states.append(records.call("c1")[0])
    assert list(agent.asked()) == ["c1"]
    timed.complete(studio.tokens[0], "v-9")
    states.append(records.call("c1")[0])
    assert states == ["awaiting_confirmation", "awaiting_completion", "resolved"]
    assert agent.go() is RunState.FINISHED
    assert (agent.result(), len(studio.jobs)) == (["v-9"], 1)


@pytest.mark.report("RB41", "RB46")
def test_RB41_RB46_several_jobs_of_one_turn_resume_it_once(
    timed: Broker, clock: Clock, studio: Studio
) -> None:
    """A27: results are stored as they come, and the run goes on after the last.

    Off: guard `complete` of the prelude without its condition.
    """
    turn = [call(f"c{n}", "render", prompt=str(n)) for n in range(3)]
    entered: list[int] = []
    model = Model(turn)

    def handler(run: Run[Any]) -> list[Any]:
        entered.append(run.seq)
        return loop(run, model, [studio.tool])

    agent = Agent(timed, clock, handler)
    agent.start()
    order = sorted(studio.jobs)
    for n in (2, 0):
        assert isinstance(timed.complete(order[n][2], n), Accepted)
        assert (agent.record()).state is RunState.WAITING
    timed.complete(order[1][2], 1)
    assert (agent.record()).state is RunState.READY
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ["0", "1", "2"]
    assert (entered, len(studio.jobs), model.asked) == ([0, 1], 3, 2)


def test_more_questions_than_a_pause_may_have(timed: Broker, clock: Clock, studio: Studio) -> None:
    """Jobs under way come first; what was completed meanwhile is found when it is asked about."""
    turn = [call(f"c{n}", "render", prompt=str(n)) for n in range(70)]
    agent = Agent(timed, clock, talking(turn, tools=[studio.tool]))
    assert agent.start() is RunState.WAITING
    for prompt, _, token in studio.jobs:
        assert (timed.complete(token, prompt)).ok
    assert agent.go() is RunState.READY
    assert agent.go() is RunState.FINISHED
    assert agent.result() == [str(n) for n in range(70)]
    assert len(studio.jobs) == 70


def test_an_id_that_comes_again_behind_a_checkpoint_is_another_call(
    timed: Broker, clock: Clock, studio: Studio
) -> None:
    """Its key and its token are others, and what completed the first one says nothing of it."""

    def handler(run: Run[Any]) -> list[Any]:
        found: list[Any] = run.checkpointed or []
        while len(found) < 2:
            found.append(run.call(studio.tool, {"prompt": "a cat"}, call_id="c1"))
            run.checkpoint(found)
        return found

    agent = Agent(timed, clock, handler)
    agent.start()
    timed.complete(studio.tokens[0], "first")
    assert agent.go() is RunState.WAITING
    first, second = studio.jobs
    assert (first[1], second[1]) == (f"{agent.run_id}:c1", f"{agent.run_id}:1/c1")
    assert isinstance(timed.complete(studio.tokens[0], "first"), Unknown)
    timed.complete(studio.tokens[1], "second")
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ["first", "second"]
