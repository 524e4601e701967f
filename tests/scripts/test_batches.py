"""Many items in one call: each its own, and two may meet."""

from datetime import timedelta

import pytest

from broker.core.answers import Reject
from broker.core.outcomes import AlreadyDecided
from broker.core.states import Mode
from broker.errors import Corrupt
from broker.store.commands import answers, pauses, runs, sweep
from broker.store.commands.values import Command, StaleAddress

from .guarded import shows_guard
from .snapshot import changed
from .world import ANN, BOB, World, approval


def codes(results: list[object]) -> list[str]:
    return [str(getattr(one, "code", type(one).__name__)) for one in results]


def test_the_fault_of_one_item_is_its_own(world: World) -> None:
    """P2, P11: one poisonous record among sixty-four, at every third place; the others are decided."""
    places = [world.asked(name=f"run-{n}") for n in range(64)]
    ids = [ids[0] for _place, ids in places]
    said = [world.say(one) for one in ids]
    for one in ids[::3]:
        world.client.delete(world.key("interrupt", one))
        world.client.set(world.key("interrupt", one), "not ours")
    told = world.all(answers.answer(world.p, said))
    for n, outcome in enumerate(told):
        if n % 3 == 0:
            assert isinstance(outcome, Corrupt)
            assert outcome.key == world.key("interrupt", ids[n])
        else:
            assert getattr(outcome, "code", outcome) == "accepted"
    assert len(world.ready()) == 64 - len(ids[::3])


def test_two_items_that_meet_see_each_other(world: World) -> None:
    """Decisions: two answers to one interrupt, and the last two of one pause, in one batch."""
    place, (a, b) = world.asked(approval("c1"), approval("c2"))
    batch = [world.say(a), world.say(a, Reject(reason="no"), BOB), world.say(b), world.say(a)]
    told = world.all(answers.answer(world.p, batch))
    assert codes(list(told)) == ["accepted", "already_decided", "accepted", "replayed"]
    assert isinstance(told[1], AlreadyDecided)
    assert told[1].winner.by == ANN
    assert (world.state(place), world.ready()) == ("ready", [place.run])


def test_two_leases_of_one_run_in_one_batch_are_one(world: World) -> None:
    place = world.place()
    world.start(place)
    row = (place.run, place.pool, place.session)
    found = world.all(
        runs.lease(world.p, [row, row], nonces=["n1", "n2"], holder="w", span=world.settings.lease)
    )
    assert [one is not None for one in found] == [True, False]


def test_an_expiry_and_an_answer_in_mode_first_in_one_batch(world: World) -> None:
    place, ids = world.asked(
        *(approval(f"c{n}", expires_in=timedelta(seconds=1)) for n in range(3)), mode=Mode.FIRST
    )
    world.forward(seconds=2)
    assert world.expire(*ids) == [True, False, False]
    assert [world.settled(one) for one in ids] == ["expired", "superseded", "superseded"]
    assert world.ready() == [place.run]


def test_a_run_that_comes_back_and_is_taken_in_one_batch(world: World) -> None:
    """A back-off ends and a lease is reclaimed beside each other; fields that were cleared read as absent."""
    failed, lease = world.started("failed")
    lost, _lease = world.started("lost")
    world.fail(lease, pause=1)
    world.forward(seconds=16)
    rows = [(one.run, one.session, one.pool) for one in (failed, lost, failed)]
    assert world.all(sweep.reclaim(world.p, rows, [timedelta()] * 3)) == ["offered", "reclaimed", "nothing"]
    assert sorted(world.ready()) == sorted([failed.run, lost.run])


@shows_guard("declared")
def test_an_item_touches_declared_keys_only(world: World) -> None:
    """An address that is out of date is noticed before the first write, whatever key is missing."""
    _place, (one,) = world.asked()
    command = answers.answer(world.p, [world.say(one)])
    keys = command.keys()
    needed = []
    before = world.snapshot()
    for left_out in keys[1:]:
        item = command.items[0]
        short = type(item)(tuple(key for key in keys if key != left_out), item.args)
        (told,) = world.all(Command("answer", world.p, (short,), command.decode))
        if isinstance(told, StaleAddress):
            needed.append(left_out)
            assert changed(before, world.snapshot()) == []
        else:
            break
    kinds = {key.partition("}:")[2].partition(":")[0] for key in needed}
    assert kinds >= {"open", "unseen", "verdict"}


def test_a_batch_of_sixty_four_is_one_call(world: World) -> None:
    lots = [world.place(f"run-{n}") for n in range(64)]
    until = world.now() + 60_000_000
    made = [
        runs.start(world.p, place, op="op", not_after=until, longest=world.settings.keep_settled)
        for place in lots
    ]
    batch = Command("start", world.p, tuple(one.items[0] for one in made), made[0].decode)
    assert codes(list(world.all(batch))) == ["accepted"] * 64
    assert world.ready() == [place.run for place in lots]


@pytest.mark.parametrize("bad", range(3))
def test_what_an_item_meant_to_write_before_its_fault_is_forgotten(world: World, bad: int) -> None:
    """P2: the fault is met at the second question of a pause; nobody in the batch sees the first one."""
    leases = [world.started(f"run-{n}") for n in range(3)]
    made = []
    for n, (place, lease) in enumerate(leases):
        pause = world.pause(place, approval("c1"), approval("c2"), token=lease.token)
        if n == bad:
            world.client.set(world.key("interrupt", pause.questions[1].id), "not ours")
        made.append(pauses.suspend(world.p, pause))
    batch = Command("suspend", world.p, tuple(one.items[0] for one in made), made[0].decode)
    told = codes(list(world.all(batch)))
    assert told == ["corrupt" if n == bad else "accepted" for n in range(3)]
    assert [world.state(place) for place, _ in leases] == [
        "leased" if n == bad else "waiting" for n in range(3)
    ]
    assert len(world.open()) == 4
