"""Doorbells change nothing and prove nothing; what is lost is rung again."""

import pytest

from broker.store.commands import address, sweep, wakes

from .rows.sweeps import GROUP, handed_out, unread
from .snapshot import changed
from .world import POOL, World, approval, completion


def test_a_bell_that_nobody_reads_yet_is_not_doubled(world: World) -> None:
    """P9: no group at all, for hours: the entry is in the stream for whoever comes, and it stays the only one."""
    _place, (one,) = world.asked(approval(expires_in=None))
    for _ in range(5):
        world.forward(hours=1)
        assert world.ring(one) == "waits"
    assert world.bells()["interrupts"] == 1


def test_a_trimmed_bell_is_rung_again_until_it_is_seen(world: World) -> None:
    """Rule 19: decided by state and time, for ever, never by "was delivered once"."""
    one = unread(world)
    for _ in range(3):
        world.client.execute_command("XTRIM", world.key("interrupts"), "MAXLEN", 0)
        assert world.ring(one) == "rung"
        assert world.ring(one) == "waits"
        world.forward(seconds=2)
    entry = sweep.Entry(world.p, handed_out(world), GROUP, world.at(one))
    world.do(sweep.seen(world.p, GROUP, [entry]))
    assert world.ring(one) == "nothing"


def test_a_lost_stream_is_rung_again(world: World) -> None:
    """P9: the stream was deleted, with its groups."""
    one = unread(world)
    world.client.delete(world.key("interrupts"))
    assert world.ring(one) == "rung"
    assert world.bells()["interrupts"] == 1


def test_a_group_made_anew_reads_what_is_there(world: World) -> None:
    """P9: readers create their group from the beginning, so an entry that is in the stream reaches them."""
    one = unread(world)
    handed_out(world)
    world.client.execute_command("XGROUP", "DESTROY", world.key("interrupts"), GROUP)
    assert world.ring(one) == "waits"
    world.client.execute_command("XGROUP", "CREATE", world.key("interrupts"), GROUP, "$")
    world.forward(seconds=2)
    assert world.ring(one) == "rung"


def test_a_dead_readers_entry_is_left_to_its_group(world: World) -> None:
    """Rule 20: it is pending, so another reader claims it; ringing would double it."""
    one = unread(world)
    handed_out(world)
    for _ in range(3):
        world.forward(minutes=1)
        assert world.ring(one) == "waits"


def test_each_audience_is_rung_for_its_own(world: World) -> None:
    """Design section 5: an entry names whom it is for; the other group's acknowledgement does not count."""
    _place, (gate, job) = world.asked(approval("c1"), completion("c2"))
    entry = sweep.Entry(world.p, "1-1", GROUP, world.at(gate))
    world.do(sweep.seen(world.p, GROUP, [entry]))
    assert world.client.zrange(world.key("unseen", "approvals"), 0, -1) == []
    assert world.client.zrange(world.key("unseen", "completions"), 0, -1) == [job.encode()]
    world.forward(seconds=2)
    world.client.delete(world.key("interrupts"))
    assert [world.ring(gate), world.ring(job, "completions")] == ["nothing", "rung"]


def test_an_entry_for_another_group_is_acknowledged_and_stays_unseen(world: World) -> None:
    one = unread(world)
    entry = sweep.Entry(world.p, handed_out(world), "completions", world.at(one))
    world.do(sweep.seen(world.p, GROUP, [entry]))
    assert world.client.zrange(world.key("unseen", "approvals"), 0, -1) == [one.encode()]


def test_ringing_writes_a_bell_and_the_time_and_nothing_else(world: World) -> None:
    """Rule 18."""
    one = unread(world)
    world.client.execute_command("XTRIM", world.key("interrupts"), "MAXLEN", 0)
    place = world.place("ready")
    world.start(place)
    world.waiters.wait()
    before = world.snapshot(fields=("bell",))
    world.ring(one)
    world.do(wakes.ring_ready(world.p, [POOL], 16))
    touched = changed(before, world.snapshot(fields=("bell",)))
    assert sorted(name.partition("}:")[2] for name in touched) == [
        "idle:agents:airline:",
        "interrupts",
        "unseen:approvals",
    ]
    assert world.state(place) == "ready"


def test_ready_bells_are_no_more_than_ready_runs(world: World) -> None:
    for n in range(3):
        world.start(world.place(f"run-{n}"))
    bells = world.bells()["ready"]
    assert world.do(wakes.ring_ready(world.p, [POOL], 16)) == 3
    assert world.do(wakes.ring_ready(world.p, [POOL], 2)) == 2
    assert world.bells()["ready"] == bells + 5


@pytest.mark.report("RA56")
def test_bells_carry_the_address_and_no_payload(world: World) -> None:
    """Decisions: an entry holds the few fields needed for routing; P13: payloads and secrets are not among them."""
    _place, (one,) = world.asked(approval(message="canary-7f3a", payload={"card": "canary-7f3a"}))
    ((_id, fields),) = world.client.xrange(world.key("interrupts"))
    assert b"canary" not in repr(fields).encode()
    entry = sweep.Entry.parse(world.p, _id, fields)
    assert (entry.address.interrupt, entry.audience) == (one, "approvals")
    keys = [address.settle_keys(world.p, a, decider=True) for a in (entry.address, world.at(one))]
    assert keys[0] == keys[1]
