"""The journal's scripts: what is kept, what is final, and what a pause makes of it."""

from datetime import timedelta

import pytest

from broker.core.answers import Complete, Edit, Fail, Reject
from broker.core.entries import read_result
from broker.core.limits import Limits
from broker.errors import JournalFull, JournalMismatch, StaleLease
from broker.store.commands import entries
from broker.store.commands.entries import STEP, Told

from .guarded import shows_guard
from .journaling import DONE, MORE, REFUND, again, begin, by_token, cut, end, handle, settled
from .world import World, approval, completion


def test_the_same_lease_is_told_to_run_again_and_counts_no_attempt(world: World) -> None:
    """P3: the reply to begin was lost."""
    _place, lease = world.started()
    first, second = begin(world, lease), begin(world, lease)
    assert (first.told, first.attempt, second.told, second.attempt) == (Told.RUN, 1, Told.RUN, 1)


def test_each_attempt_of_another_worker_counts(world: World) -> None:
    """A7: same call, attempt 2."""
    place, lease = world.started()
    assert [begin(world, lease).attempt, begin(world, again(world, place), again=True).attempt] == [1, 2]


def test_the_token_of_a_job_is_the_same_at_every_attempt(world: World) -> None:
    """A16: it exists before the start, so a worker that died may have given it away."""
    place, lease = world.started()
    first = begin(world, lease, long=True).token
    assert first.startswith("tok_")
    assert begin(world, again(world, place), long=True, again=True).token == first
    assert world.read(entries.read_token(world.p, place.run, "c1")) == first


def test_a_stored_result_comes_back_and_is_never_replaced(world: World) -> None:
    """A8, rule 33."""
    place, lease = world.started()
    begin(world, lease)
    assert end(world, lease, value="first").code == "accepted"
    later = again(world, place)
    assert read_result(begin(world, later).detail).value == "first"
    assert read_result(end(world, later, value="second").stored).value == "first"


def test_an_older_worker_changes_nothing(world: World) -> None:
    """Rule 16, X5: two workers at once; the one whose lease ran out is refused at every step."""
    place, old = world.started()
    begin(world, old, long=True)
    new = again(world, place)
    before = world.snapshot()
    for late in (begin, end, handle, cut):
        with pytest.raises(StaleLease):
            late(world, old)
    assert world.snapshot() == before
    assert begin(world, new, long=True, again=True).told is Told.RUN


def test_arguments_that_differ_run_nothing(world: World) -> None:
    """A28, rule 31: both digests are named."""
    _place, lease, one = settled(world)
    with pytest.raises(JournalMismatch) as caught:
        begin(world, lease, gated=True, asked=MORE, interrupt=one)
    assert (caught.value.recorded, caught.value.found) == (REFUND.digest, MORE.digest)


@shows_guard("journal-digest")
def test_arguments_that_differ_get_no_stored_result(world: World) -> None:
    """A28: neither while the call runs, nor when its result is there."""
    _place, lease = world.started()
    begin(world, lease)
    with pytest.raises(JournalMismatch):
        begin(world, lease, asked=MORE)
    end(world, lease)
    with pytest.raises(JournalMismatch):
        begin(world, lease, asked=MORE)


def test_what_runs_is_what_was_edited(world: World) -> None:
    _place, lease, one = settled(world, Edit(arguments={"amount": 400}), offers=("approve", "edit"))
    assert begin(world, lease, gated=True, interrupt=one, running=MORE).told is Told.RUN


@shows_guard("place-tool")
def test_another_tool_at_a_place_runs_nothing(world: World) -> None:
    """Neither a call that was begun there, nor one that is asked about, nor one that could not be made; nor a step."""
    place, lease = world.started()
    begin(world, lease, "0:refund", place="0")
    begin(world, lease, "1:refund", place="1", gated=True)
    end(world, lease, "2:refund", refused=REFUND.digest, place="2")
    later, before = again(world, place), world.snapshot()
    for at in "012":
        for name in (f"{at}:pay", f"{STEP}{at}"):
            with pytest.raises(JournalMismatch) as caught:
                begin(world, later, name, place=at, asked=MORE)
            assert (caught.value.recorded, caught.value.found) == (REFUND.digest, MORE.digest)
        with pytest.raises(JournalMismatch):
            end(world, later, f"{at}:pay", refused=MORE.digest, place=at)
    assert world.snapshot() == before


@shows_guard("place-kind")
def test_a_call_at_the_place_of_a_step_runs_nothing(world: World) -> None:
    place, lease = world.started()
    begin(world, lease, f"{STEP}0", place="0")
    later = again(world, place)
    with pytest.raises(JournalMismatch) as caught:
        begin(world, later, "0:pay", place="0", asked=MORE)
    assert (caught.value.recorded, caught.value.found) == (REFUND.digest, MORE.digest)
    assert begin(world, later, f"{STEP}0", place="0", again=True).told is Told.RUN


def test_a_journal_without_places_is_read_as_before(world: World) -> None:
    """One that an earlier release wrote; its places are kept from the next begin on."""
    place, lease = world.started()
    begin(world, lease, "0:refund")
    begin(world, lease, "1:refund")
    end(world, lease, "1:refund")
    later = again(world, place)
    assert begin(world, later, "0:refund", place="0", again=True).told is Told.RUN
    assert begin(world, later, "1:refund", place="1").told is Told.STORED
    with pytest.raises(JournalMismatch):
        begin(world, later, "0:pay", place="0")


@shows_guard("cut-places")
def test_a_checkpoint_leaves_no_places(world: World) -> None:
    place, lease = world.started()
    begin(world, lease, "0:refund", place="0")
    end(world, lease, "0:refund")
    cut(world, lease)
    assert world.client.hkeys(world.p.key("journal", place.run)) == [b"checkpoint"]


@shows_guard("handle-final")
def test_a_handle_never_reopens_a_call(world: World) -> None:
    """Rule 30: the job ended before its handle was stored."""
    place, lease = world.started()
    begin(world, lease, long=True)
    by_token(world, place)
    assert handle(world, lease) == "resolved"
    assert begin(world, lease, long=True).handle is None


def test_a_failure_of_the_worker_does_not_replace_a_completion(world: World) -> None:
    """Rule 30: the worker gave up, and the job had ended well. The pause that asks finds the completion."""
    place, lease = world.started()
    begin(world, lease, long=True)
    assert by_token(world, place).code == "parked"
    assert end(world, lease, value="gave up").code == "completed"
    world.ask(lease, completion())
    (one,) = world.run_address(place).interrupts
    resolution = world.record(one.interrupt).resolution
    assert resolution is not None
    assert (world.state(place), resolution.answer) == ("ready", Complete(value=7))


def test_a_completion_before_a_crash_is_found_by_the_next_worker(world: World) -> None:
    """A15, rule 10: completed between start and pause, and the worker died; the call is the same one still."""
    place, lease = world.started()
    begin(world, lease, long=True)
    by_token(world, place)
    assert begin(world, again(world, place), long=True).told is Told.WAIT


def test_a_second_completion_by_token_is_told_who_was_first(world: World) -> None:
    """A15: before the pause, and after it."""
    place, lease = world.started()
    begin(world, lease, long=True)
    codes = [by_token(world, place, op=op).code for op in ("op-1", "op-1", "op-2")]
    world.ask(lease, completion())
    codes += [by_token(world, place, Fail(error="late"), op=op).code for op in ("op-1", "op-2")]
    assert codes == ["parked", "replayed", "already_decided", "replayed", "already_decided"]


@shows_guard("keep-early")
def test_a_completion_waits_as_long_as_its_run(world: World) -> None:
    """Section 6: a part of a run that is not closed has no time to live, however long its worker is dead."""
    place, lease = world.started()
    begin(world, lease, long=True)
    by_token(world, place)
    world.forward(hours=3)
    assert world.collect() == 0
    later = again(world, place)
    assert begin(world, later, long=True).told is Told.WAIT
    world.ask(later, completion())
    assert world.state(place) == "ready"


def test_a_completion_nobody_asks_for_goes_after_its_run(world: World) -> None:
    place, lease = world.started()
    begin(world, lease, long=True)
    by_token(world, place)
    world.finish(lease)
    world.forward(hours=2)
    while world.collect():
        pass
    left = {key.partition("}:")[2].partition(":")[0] for key in world.snapshot()}
    assert left.isdisjoint({"run", "calls", "journal", "early", "verdict", "aliases"})


@shows_guard("keep-needed")
def test_an_answer_that_was_not_read_yet_stays(world: World) -> None:
    """Nothing gets stuck: `c1` was approved, the run paused again before it came to `c1`, and waited for hours."""
    place, ids = world.asked(approval("c1"), approval("c2"))
    for one in ids:
        world.answer(one, Reject(reason="no"))
    lease = world.leased(place, "n2")
    begin(world, lease, "c0")
    end(world, lease, "c0")
    begin(world, lease, "c2", gated=True, interrupt=ids[1])
    end(world, lease, "c2")
    world.ask(lease, approval("c3"))
    world.forward(hours=2)
    assert world.collect() == 1
    assert (world.settled(ids[0]), world.settled(ids[1])) == ("resolved", "")
    (third,) = world.run_address(place).interrupts
    world.answer(third.interrupt)
    lease = world.leased(place, "n3")
    assert begin(world, lease, "c1", gated=True, interrupt=ids[0]).told is Told.SETTLED
    world.finish(lease)
    world.forward(hours=2)
    while world.collect():
        pass
    assert world.settled(ids[0]) == ""


def test_a_run_without_a_journal_keeps_nothing_longer(world: World) -> None:
    place, ids = world.asked(approval("c1"))
    world.answer(ids[0])
    world.ask(world.leased(place, "n2"), approval("c2"))
    world.forward(hours=2)
    assert world.collect() == 1
    assert world.settled(ids[0]) == ""


@shows_guard("cut-begun")
def test_a_cut_takes_what_has_ended_and_nothing_else(world: World) -> None:
    place, lease = world.started()
    for name in ("c1", "c2"):
        begin(world, lease, name)
    end(world, lease, "c1")
    cut(world, lease)
    assert (world.call(place, "c1"), world.call(place, "c2")) == ("", "pending_result")
    assert world.read(entries.read_checkpoint(world.p, place.run)) == {"turn": 1}
    assert world.client.hkeys(world.key("journal", place.run)) == [b"checkpoint"]
    assert end(world, lease, "c2").entries == 1


@shows_guard("cut-once")
def test_a_cut_that_is_repeated_takes_nothing_more(world: World) -> None:
    """P3: its reply was lost."""
    place, lease = world.started()
    cut(world, lease)
    begin(world, lease)
    end(world, lease)
    cut(world, lease)
    assert world.call(place) == "resolved"


def test_the_longest_journal_can_be_cut(world: World) -> None:
    """10,000 entries, more than a script can hand over in one command."""
    place, lease = world.started()
    rows = {f"c{n}": "resolved 1 1:x - 1" for n in range(Limits().journal_entries)}
    world.client.hset(world.key("calls", place.run), mapping=rows)
    world.client.hset(world.key("journal", place.run), mapping={f"r {name}": DONE for name in rows})
    cut(world, lease)
    assert world.client.exists(world.key("calls", place.run)) == 0
    assert world.client.hkeys(world.key("journal", place.run)) == [b"checkpoint"]


def test_a_full_journal_begins_nothing_and_ends_what_was_begun(world: World) -> None:
    """P12: what ran is recorded, however full it is; what would be one too many does not run."""
    _place, lease = world.started()
    world.settings = world.settings.model_copy(update={"limits": Limits(journal_entries=2)})
    for name in ("c1", "c2", "c3"):
        begin(world, lease, name)
    assert [end(world, lease, name).entries for name in ("c1", "c2", "c3")] == [1, 2, 3]
    with pytest.raises(JournalFull):
        begin(world, lease, "c4")
    assert begin(world, lease, "c1").told is Told.STORED
    cut(world, lease)
    assert begin(world, lease, "c4").told is Told.RUN


def test_bytes_count_too(world: World) -> None:
    _place, lease = world.started()
    world.settings = world.settings.model_copy(update={"limits": Limits(journal_bytes=100)})
    begin(world, lease)
    assert end(world, lease, value="x" * 100).size > 100
    with pytest.raises(JournalFull):
        begin(world, lease, "c2")


def test_a_closed_run_leaves_no_journal(world: World) -> None:
    place, lease = world.started()
    begin(world, lease)
    end(world, lease)
    world.finish(lease)
    world.forward(seconds=timedelta(hours=2).total_seconds())
    world.collect()
    assert world.client.exists(world.key("journal", place.run), world.key("calls", place.run)) == 0
