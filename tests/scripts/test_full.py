"""P15: at the memory limit new work is refused, and what is under way goes on."""

from collections.abc import Callable, Iterator

import pytest
import redis

from broker.core.answers import Reject
from broker.core.states import Mode
from broker.errors import OutOfMemory
from broker.store import namespace, scripts
from broker.store.commands import pauses, runs
from broker.store.connect import meaning
from broker.testing import ServerProcess

from .snapshot import changed
from .world import World, approval


@pytest.fixture
def world(start_server: Callable[..., ServerProcess]) -> Iterator[World]:
    """A namespace on a server of this test's own."""
    made = World(start_server().url, "full")
    yield made
    made.close()


def fill(world: World) -> None:
    """From now on the server is at its limit."""
    world.client.config_set("maxmemory", 1)


@pytest.mark.row("X11")
def test_P15_R12_new_work_is_refused_and_nothing_is_written(world: World) -> None:
    new, until = world.place("new"), world.now() + 60_000_000
    longest = world.settings.keep_settled
    adopt = runs.adopt(
        world.p, new, nonce="n", holder="w", lease=world.settings.lease, not_after=until, longest=longest
    )
    suspend = pauses.suspend(world.p, world.pause(new, approval()))
    start = runs.start(world.p, new, op="op", not_after=until, longest=longest)
    fill(world)
    for command in (start, adopt, suspend):
        with pytest.raises(redis.exceptions.OutOfMemoryError) as fault:
            world.all(command)
        assert isinstance(meaning(fault.value), OutOfMemory)
    assert world.snapshot() == {}


@pytest.mark.report("RA51")
def test_P15_R12_answers_resumes_pauses_and_ends_go_through(world: World) -> None:
    place, lease = world.started()
    other, (one,) = world.asked(approval("c9"), name="other")
    fill(world)
    assert world.ask(lease, approval("c1"), approval("c2"), mode=Mode.EACH).code == "accepted"
    first, second = (a.interrupt for a in world.run_address(place).interrupts)
    assert world.answer(first).code == "accepted"
    lease = world.leased(place, "n2")
    assert world.renew(lease) is not None
    assert world.answer(second, Reject(reason="no")).code == "accepted"
    assert world.finish(lease) == "ready"
    world.release(world.leased(place, "n3"))
    world.fail(world.leased(place, "n4"))
    assert world.finish(world.leased(place, "n5")) == "finished"
    assert world.withdraw(other).code == "accepted"
    assert world.settled(one) == "withdrawn"


def test_P15_R12_who_comes_when_it_is_full_can_still_answer(world: World) -> None:
    """A process that connects then asks for the settings of the namespace, which writes nothing where they are."""
    created = namespace.create(world.namespace, namespace.Wanted())
    first = world.do(created)
    before = world.snapshot()
    fill(world)
    assert world.do(created) == first
    assert changed(before, world.snapshot()) == []


def test_what_may_run_at_the_limit_is_said_in_one_place(world: World) -> None:
    """New work carries no flag, input too; everything else `allow-oom`; a leased run may always pause."""
    assert world.client.ping()
    free = {
        name for name in scripts.names() if "allow-oom" in world.rendering.script(name).text.splitlines()[0]
    }
    assert set(scripts.names()) - free == {"start", "adopt", "suspend", "say"}
    assert "allow-oom" in world.rendering.script("suspend", oom=True).text.splitlines()[0]
