"""The scripts beside the transitions: settings of a namespace, rights, the right to sweep, workers."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from broker.core.settings import Settings
from broker.store import namespace
from broker.store.commands import reads, sweep
from broker.store.keys import Keyspace
from broker.testing import ServerProcess

from .guarded import shows_guard
from .snapshot import changed
from .world import World

SECOND = timedelta(seconds=60)


def test_a_namespace_is_made_once_and_never_changed(world: World) -> None:
    """Decisions: count, versions, epoch, retention are kept on the server; whoever comes later gets those."""
    first = world.do(namespace.create(world.namespace, namespace.Wanted(partitions=4)))
    before = world.snapshot()
    later = namespace.Wanted(partitions=8, settings=Settings(keep_settled=timedelta(hours=5)))
    assert world.do(namespace.create(world.namespace, later)) == first
    assert changed(before, world.snapshot()) == []
    assert (first["partitions"], first["keep_settled"], first["epoch"]) == ("4", "3600000", "1")


@shows_guard("stir")
def test_a_sweeper_that_sleeps_is_told_of_what_it_looks_after(world: World) -> None:
    """A question, a ready run, a lease; not a renewal, which only moves a time away."""
    with world.client.pubsub() as asleep:
        asleep.subscribe(world.key("stir"))

        def stirred() -> bool:
            asleep.ping()
            kinds: list[str] = []
            while "pong" not in kinds:
                kinds += [one["type"] for one in [asleep.get_message(timeout=5)] if one is not None]
            return "message" in kinds

        assert not stirred()
        _place, lease = world.started()
        assert stirred()
        world.renew(lease)
        assert not stirred()
        world.asked()
        assert stirred()


@shows_guard("sweep-held")
def test_one_sweeper_at_a_time(world: World) -> None:
    """Design section 5: elected by an expiring lease, renewed by its holder, given up by its holder alone."""

    def right(name: str, span: timedelta = SECOND) -> bool:
        return world.do(sweep.sweep_right(world.p, name, span)) is not None

    assert [right("w a"), right("w a"), right("w b"), right("w b", timedelta())] == [True, True, False, False]
    assert 0 < world.client.pttl(world.key("sweeper")) <= 60_000
    assert right("w a", timedelta())
    assert world.snapshot() == {}
    assert right("w b")


def test_a_deciders_sweeper_takes_over_from_a_workers(world: World) -> None:
    """A default answer needs a decider: its sweeper does more, so it goes first, and a worker's does not come back."""
    names = ("w a", "d b", "w a", "d c")
    rights = [world.do(sweep.sweep_right(world.p, name, SECOND)) is not None for name in names]
    assert rights == [True, True, False, False]
    assert world.client.get(world.key("sweeper")) == b"d b"


def test_the_server_tells_its_time_to_the_sweeper(world: World) -> None:
    world.forward(hours=3)
    told = world.do(sweep.sweep_right(world.p, "w a", SECOND))
    assert told is not None
    assert abs(told.now - world.now()) < 60_000_000


def test_workers_are_known_until_they_leave(world: World) -> None:
    there = world.do(sweep.register(world.p, "w-1", b"record 1"))
    assert there.workers == 0
    assert world.do(sweep.register(world.p, "w-2", b"record 2")).workers == 1
    found = world.read(reads.read_workers(world.p))
    assert found["w-1"] == (there.now, b"record 1")
    for name in ("w-1", "w-2", "w-2"):
        world.do(sweep.register(world.p, name, b""))
    assert world.snapshot() == {}


@pytest.mark.parametrize("command", ["xadd", "zadd", "xinfo|groups", "publish", "hkeys", "ltrim"])
def test_a_missing_right_is_found_before_anything_is_written(
    start_server: Callable[..., ServerProcess], command: str
) -> None:
    """Decisions: it would fail in mid-script and leave earlier writes, so it is tried on scratch keys first."""
    server = start_server()
    world = World(server.url, "rights")
    world.client.execute_command("ACL", "SETUSER", "u", "on", ">p", "+@all", f"-{command}", "~*", "&*")
    user = World(server.url.replace("unix://", "unix://u:p@"), "rights")
    refused = user.do(namespace.check_commands(Keyspace("rights", 1), decider=False))
    assert refused.lower().startswith(command.partition("|")[0])
    assert world.snapshot() == {}
    for one in (user, world):
        one.close()
