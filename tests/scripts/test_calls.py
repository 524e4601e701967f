"""Answers that name their question by its call, and those that come before it."""

from collections import Counter
from datetime import timedelta

import pytest

from broker.core.answers import Approve, Cancel, Complete, Edit, Fail, Reject, Respond
from broker.core.digest import action_digest
from broker.core.models import Interrupt
from broker.core.states import Mode
from broker.store.commands import address, answers, pauses
from broker.store.commands.values import Item, Recheck

from .guarded import shows_guard
from .snapshot import changed
from .world import BOB, SESSION, World, approval, completion

SCHEMA = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}


def last(world: World, place_name: str = "a") -> str:
    """The interrupt that a run asked last."""
    return world.run_address(world.place(place_name)).interrupts[-1].interrupt


@pytest.mark.report("RA19")
def test_a_late_click_does_not_approve_what_is_asked_now(world: World) -> None:
    """Rule 6: call 7 asks for 40, is approved, asks again for 400; a click on the first card names its sequence."""
    place, (_forty,) = world.asked(approval("c7", 40))
    world.answer_call("c7", run=place.run, seq=1)
    world.ask(world.leased(place, "n2"), approval("c7", 400))
    four_hundred = last(world)
    assert world.answer_call("c7", by=BOB, run=place.run, seq=1).code == "already_decided"
    assert world.settled(four_hundred) == "open"
    assert world.answer_call("c7", by=BOB, run=place.run, seq=2).code == "accepted"


def test_without_a_sequence_a_call_counts_while_it_was_asked_once(world: World) -> None:
    """Rule 7: the winner that asks again is told so; everybody else must name the sequence from then on."""
    place, (_one,) = world.asked(approval("c7", 40))
    assert world.answer_call("c7", op="op-1").code == "accepted"
    world.ask(world.leased(place, "n2"), approval("c7", 400))
    assert world.answer_call("c7", op="op-1").code == "replayed"
    assert world.answer_call("c7", op="op-2").code == "conflict"
    assert world.settled(last(world)) == "open"


@shows_guard("gone-call")
def test_a_collected_interrupt_still_counts_as_seen(world: World) -> None:
    """Rule 7 says *ever*: an hour later the first one's records are gone, and the late click must not count."""
    place, (_one,) = world.asked(approval("c7", 40))
    world.answer_call("c7", op="op-1")
    lease = world.leased(place, "n2")
    world.ask(lease, approval("c8"))
    world.answer(last(world))
    world.forward(hours=2)
    assert world.collect() == 1
    assert world.answer_call("c7", op="late").code == "unknown"
    world.ask(world.leased(place, "n3"), approval("c7", 400))
    assert world.answer_call("c7", op="late").code == "conflict"
    assert world.answer_call("c7", op="op-3", run=place.run, seq=3).code == "accepted"


@pytest.mark.parametrize("known", [True, False], ids=["by run and sequence", "by call"])
def test_a_completion_that_comes_before_its_question_is_kept(world: World, known: bool) -> None:  # noqa: FBT001
    """P5, F04, RA1, RA2, rule 10: the run is ready at once, with the answer in its hands."""
    place, lease = world.started()
    run, seq = (place.run, 1) if known else ("", 0)
    assert world.answer_call("c1", Complete(value={"url": "x"}), run=run, seq=seq).code == "parked"
    assert world.ask(lease, completion()).code == "accepted"
    found = world.record(last(world))
    assert (world.state(place), found.problem) == ("ready", None)
    assert found.resolution is not None
    assert found.resolution.answer == Complete(value={"url": "x"})
    assert world.client.exists(world.key("early", SESSION)) == 0


@pytest.mark.report("RA2")
def test_every_order_of_completion_and_pause_ends_ready(world: World) -> None:
    """RA2: before the start, between start and pause, after the pause: never lost, never twice."""
    for n, when in enumerate(("before", "between", "after")):
        place, call = world.place(f"run-{n}"), f"call-{n}"
        said = []
        for step in ("before", "start", "between", "ask", "after"):
            if step == "start":
                world.start(place)
            elif step == "ask":
                world.ask(world.leased(place), completion(call))
            elif step == when:
                said.append(world.answer_call(call, Complete(value=n), run=place.run, seq=1).code)
        assert said == ["accepted" if when == "after" else "parked"]
        assert world.state(place) == "ready"


def test_the_winner_of_a_slot_is_told_so_before_and_after_the_match(world: World) -> None:
    """P3, rule 1 for early answers, the call record resolved or not."""
    place, (first,) = world.asked(completion())

    def early(op: str) -> str:
        return world.answer_call("c1", Complete(value=2), run=place.run, seq=2, op=op).code

    assert [early(op) for op in ("op-1", "op-1", "op-2")] == ["parked", "replayed", "already_decided"]
    world.answer(first, Fail(error="too slow"))
    world.ask(world.leased(place, "n2"), completion())
    assert world.state(place) == "ready"
    assert [early(op) for op in ("op-1", "op-2")] == ["replayed", "already_decided"]


def test_a_carried_answer_is_replayed_to_its_giver(world: World) -> None:
    """P3: an answer nobody has read yet moves to the next pause; its giver, asking again by its sequence, hears yes."""
    place, (first, second) = world.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    world.answer(first)
    lease = world.leased(place, "n2")
    assert world.answer_call("c2", run=place.run, seq=1, op="op-2").code == "accepted"
    world.ask(lease, approval("c3"), mode=Mode.EACH)
    assert world.field("interrupt", second, "seq") == "2"
    assert world.answer_call("c2", run=place.run, seq=1, op="op-2").code == "replayed"


def test_a_kept_question_is_found_by_the_pause_it_was_shown_in(world: World) -> None:
    place, (first, second) = world.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    world.answer(first)
    world.ask(world.leased(place, "n2"), approval("c3"), mode=Mode.EACH, keep=[second])
    assert world.answer_call("c2", run=place.run, seq=1).code == "accepted"


@shows_guard("early-sole")
def test_an_early_answer_by_call_alone_counts_only_while_one_asks(world: World) -> None:
    """Rule 7 for early answers: two questions of the session have that call id, so it is about neither."""
    other, _ids = world.asked(approval("c1"), name="other")
    world.answer(last(world, "other"))
    world.client.hdel(world.key("aliases", SESSION), "call:c1")
    assert world.answer_call("c1", op="op-1").code == "parked"
    world.client.hset(world.key("aliases", SESSION), "call:c1", f"~{other.run}")
    place, lease = world.started()
    world.ask(lease, approval("c1"))
    assert (world.state(place), world.settled(last(world))) == ("waiting", "open")


@shows_guard("early-schema")
def test_an_early_answer_is_held_against_the_schema_of_its_question(world: World) -> None:
    """F16, rule 10: it is looked at before the pause is made; what does not fit is reported, and the question asked."""
    place, lease = world.started()
    world.answer_call("c1", Complete(value={"url": 7}), run=place.run, seq=1)
    pause = world.pause(place, completion(response_schema=SCHEMA), token=lease.token)
    before = world.snapshot()
    with pytest.raises(Recheck):
        world.do(pauses.suspend(world.p, pause))
    assert changed(before, world.snapshot()) == []
    assert world.suspend(pause).code == "accepted"
    assert world.settled(last(world)) == "open"
    assert world.history()[-1].event == "unmatched"
    assert world.answer(last(world), Complete(value={"url": "x"})).code == "accepted"


def test_an_early_answer_that_fits_its_schema_is_taken(world: World) -> None:
    place, lease = world.started()
    world.answer_call("c1", Complete(value={"url": "x"}), run=place.run, seq=1)
    world.ask(lease, completion(response_schema=SCHEMA))
    assert world.state(place) == "ready"


def test_an_early_edit_lets_its_own_action_run(world: World) -> None:
    """Rule 31: the edit was given before the question; what may run is the edited action, not the one asked for."""
    place, lease = world.started()
    world.answer_call("c1", Edit(arguments={"amount": 30}), run=place.run, seq=1)
    world.ask(lease, approval(amount=40, offers=("approve", "edit", "reject")))
    assert world.state(place) == "ready"
    assert world.field("interrupt", last(world), "approved") == action_digest("refund", {"amount": 30})


@pytest.mark.parametrize("answer", [Respond(payload=1), Complete(value=1)])
def test_an_early_answer_of_the_wrong_kind_is_reported_and_not_taken(
    world: World, answer: Respond | Complete
) -> None:
    place, lease = world.started()
    world.answer_call("c1", answer, run=place.run, seq=1)
    world.ask(lease, approval())
    assert world.settled(last(world)) == "open"
    unmatched = world.history()[-1]
    assert (unmatched.event, unmatched.interrupt_id, unmatched.run_id) == (
        "unmatched",
        last(world),
        place.run,
    )
    world.forward(minutes=11)
    world.collect()
    assert [key for key in world.snapshot() if ":verdict:" in key] == []


def test_an_early_answer_that_saw_another_question_is_not_taken(world: World) -> None:
    place, lease = world.started()
    world.answer_call("c1", run=place.run, seq=1, seen=approval(amount=40).content_digest)
    world.ask(lease, approval(amount=400))
    assert world.settled(last(world)) == "open"


def test_an_early_cancel_cancels(world: World) -> None:
    place, lease = world.started()
    world.answer_call("c1", Cancel(), run=place.run, seq=1)
    world.ask(lease, approval())
    assert (world.settled(last(world)), world.state(place)) == ("cancelled", "ready")


@pytest.mark.report("RA27")
def test_an_early_answer_whose_question_never_comes_is_reported(world: World) -> None:
    """Section 6: after its time it is reported (history and bell), never dropped in silence."""
    place, _lease = world.started()
    world.answer_call("c1", Reject(reason="no"), run=place.run, seq=1)
    bells = world.bells()["dispositions"]
    world.forward(minutes=10, seconds=1)
    assert world.collect() == 1
    assert world.history()[-1].event == "unmatched"
    assert world.bells()["dispositions"] == bells + 1
    assert [key for key in world.snapshot() if ":verdict:" in key or ":early:" in key] == []


def test_one_of_two_early_answers_leaves_the_other_question_open(world: World) -> None:
    place, lease = world.started()
    world.answer_call("c1", run=place.run, seq=1)
    world.ask(lease, approval("c1"), approval("c2"))
    first, second = (a.interrupt for a in world.run_address(place).interrupts)
    assert (world.settled(first), world.settled(second), world.state(place)) == (
        "resolved",
        "open",
        "waiting",
    )


def test_mode_first_takes_one_early_answer_and_reports_the_other(world: World) -> None:
    place, lease = world.started()
    for call in ("c1", "c2"):
        world.answer_call(call, run=place.run, seq=1)
    world.ask(lease, approval("c1"), approval("c2"), mode=Mode.FIRST)
    first, second = (a.interrupt for a in world.run_address(place).interrupts)
    assert (world.settled(first), world.settled(second), world.state(place)) == (
        "resolved",
        "superseded",
        "ready",
    )
    assert "unmatched" in [e.event for e in world.history()]


@pytest.mark.report("RA20")
@pytest.mark.parametrize("question", [approval(), completion()])
def test_the_same_call_of_another_session_is_another_call(world: World, question: Interrupt) -> None:
    """P13, RA20: an answer to a call id of one session settles nothing in another."""
    place, (one,) = world.asked(question)
    assert world.answer_call("c1", Approve(), session="other").code == "parked"
    assert world.answer_call("c1", Approve(), session="other", run=place.run, seq=1).code == "unknown"
    assert world.settled(one) == "open"


@pytest.mark.report("RA1")
def test_ten_thousand_answers_before_anybody_waits(world: World) -> None:
    """RA1: all are sent before any question is asked, then 157 runs ask 64 each; none is lost, every run is ready."""
    calls, places = [f"call-{n}" for n in range(64)], [world.place(f"run-{n}") for n in range(157)]
    until = world.now() + round(timedelta(minutes=9).total_seconds() * 1e6)
    said = answers.Said("op", Complete(value=0).kind, "mark", b"verdict", b"")
    told: Counter[str] = Counter()
    for place in places:
        slots = {call: address.early_slot(SESSION, place.run, 1, call) for call in calls}
        first = answers.CallAddress(SESSION, calls[0], slots[calls[0]], place.run, 1)
        command = answers.answer_call(
            world.p, first, said, not_after=until, longest=world.settings.keep_settled
        )
        keys, args = command.items[0].keys, command.items[0].args
        items = tuple(
            Item((*keys, world.key("verdict", slot)), (*args[:4], call, *args[5:12], slot, *args[13:]))
            for call, slot in slots.items()
        )
        results = world.all(command._replace(items=items))
        told.update(one.code for one in results if not isinstance(one, BaseException))
    assert told == {"parked": 10_048}
    pause = world.pause(places[0], *(completion(call, expires_in=None) for call in calls))
    for n, place in enumerate(places):
        questions = tuple(q._replace(id=f"int_{n:04x}{k:032x}") for k, q in enumerate(pause.questions))
        assert (
            world.do(pauses.suspend(world.p, pause._replace(place=place, questions=questions))).code
            == "accepted"
        )
    assert len(world.ready()) == 157
    assert world.client.exists(world.key("early", SESSION)) == 0
