"""Input that comes to a run after it has begun: kept in order, once, for as long as the run."""

from broker.core.outcomes import Accepted, Conflict, Full, Replayed, Unknown
from broker.store.commands import inputs

from .guarded import shows_guard
from .world import World, approval


def test_what_is_said_is_kept_in_order(world: World) -> None:
    """In every state of a run that is not closed; after its retention it goes with the run."""
    place = world.place()
    world.start(place)
    assert isinstance(world.put(place, "ready", op="m-1"), Accepted)
    lease = world.leased(place)
    world.put(place, None, op="m-2")
    world.ask(lease, approval())
    world.put(place, {"waiting": [1.5]}, op="m-3")
    assert world.read(inputs.read_said(world.p, place.run)) == ("ready", None, {"waiting": [1.5]})
    entries = [entry for entry in world.history() if entry.event == "said"]
    assert [(entry.op, entry.state) for entry in entries] == [
        ("m-1", "ready"), ("m-2", "leased"), ("m-3", "waiting")
    ]  # fmt: skip
    assert len({entry.digest for entry in entries}) == 3
    world.withdraw(place, 1)
    world.forward(days=9)
    world.collect()
    assert world.client.exists(world.key("said", place.run), world.key("run", place.run)) == 0


@shows_guard("say-once")
def test_the_same_said_again_is_one_input(world: World) -> None:
    """Also after the run has closed: the one who said it hears what it heard before."""
    place, lease = world.started()
    first = world.put(place, "a", op="m-1")
    assert isinstance(world.put(place, "a", op="m-1"), Replayed)
    world.finish(lease)
    again = world.put(place, "a", op="m-1")
    assert isinstance(again, Replayed)
    assert isinstance(first, Accepted)
    assert world.read(inputs.read_said(world.p, place.run)) == ("a",)


@shows_guard("say-closed")
def test_a_closed_run_takes_none(world: World) -> None:
    place, lease = world.started()
    world.finish(lease)
    before = world.snapshot()
    assert isinstance(world.put(place, "a", op="m-1"), Conflict)
    assert world.snapshot() == before


def test_a_run_that_is_not_there_takes_none(world: World) -> None:
    assert isinstance(world.put(world.place(), "a", op="m-1"), Unknown)


@shows_guard("say-room")
def test_a_run_takes_so_many(world: World) -> None:
    place, _lease = world.started()
    assert isinstance(world.put(place, "a", op="m-1", most=1), Accepted)
    before = world.snapshot()
    assert isinstance(world.put(place, "b", op="m-2", most=1), Full)
    assert world.snapshot() == before
