"""Pausing: one step, one point, one meaning."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.core.answers import Respond
from broker.core.models import Interrupt
from broker.core.states import Mode
from broker.errors import StaleLease
from broker.store.commands import reads
from broker.store.commands.runs import Leased, Place
from broker.store.keys import Pool

from .guarded import shows_guard
from .rows.runs import each
from .snapshot import changed
from .world import POOL, World, approval, completion


def test_a_pause_is_one_step(world: World) -> None:
    """P2, rule 12: state, interrupts, mark, indexes, timers and bells are there together; the lease is gone."""
    place, lease = world.started()
    outcome = world.ask(lease, approval("c1"), completion("c2"), Interrupt.question("why?"))
    ids = outcome.interrupt_ids  # type: ignore[union-attr]
    kinds = {name.partition("}:")[2].partition(":")[0] for name in world.snapshot()}
    assert {"run", "state", "interrupt", "question", "calls", "aliases", "active", "timers", "open"} <= kinds
    assert world.client.hgetall(world.key("active", place.session)) == {place.run.encode(): b"1"}
    assert sorted(world.client.smembers(world.key("lists"))) == [
        b"agents:approval_pending:refund", b"agents:custom:", b"agents:custom:render",
    ]  # fmt: skip
    assert world.open() == list(ids)
    assert sorted(world.client.zrange(world.key("timers"), 0, -1)) == sorted(f"i {i}".encode() for i in ids)
    assert world.bells()["interrupts"] == 3
    assert [e.event for e in world.history()].count("suspended") == 3
    with pytest.raises(StaleLease):
        world.finish(lease)


def test_a_pause_that_is_refused_is_not_there_at_all(world: World) -> None:
    """P2, P12: the last question is in the past, so the first one was not asked either, and the lease holds."""
    _place, lease = world.started()
    before = world.snapshot()
    late = approval("c2", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert world.ask(lease, approval("c1"), late).code == "invalid"
    assert changed(before, world.snapshot()) == []
    assert world.ask(lease, approval("c1")).code == "accepted"


def test_the_same_point_asks_the_same_question_once(world: World) -> None:
    """P3, F06, rule 13: a worker that crashed after its pause, or lost the reply, gets the same ids."""
    place = world.place()
    world.start(place)
    lease = world.leased(place)
    pause = world.pause(place, approval("c1"), approval("c2"), token=lease.token)
    first = world.suspend(pause)
    again = [world.suspend(pause) for _ in range(2)]
    ids = first.interrupt_ids  # type: ignore[union-attr]
    assert [(o.code, getattr(o, "interrupt_ids", ())) for o in again] == [("replayed", ids)] * 2
    assert len(world.open()) == 2


def test_the_next_pause_at_the_same_point_is_another_one(world: World) -> None:
    """Rule 13: the agent asks the same thing again; it is a new question under the next sequence."""
    place, (one,) = world.asked(approval("c1"))
    world.answer(one)
    world.ask(world.leased(place, "n2"), approval("c1"))
    two = world.run_address(place).interrupts[-1].interrupt
    assert (two != one, world.settled(two), world.state(place)) == (True, "open", "waiting")


def test_other_content_at_the_same_point_is_another_question(world: World) -> None:
    """Rule 8: the id covers the content: who answers the card that says 40 does not approve 400."""
    place = world.place()
    forty, more = (world.pause(place, approval(amount=amount)).questions[0] for amount in (40, 400))
    assert forty.id != more.id


def test_two_pauses_of_two_workers_do_not_both_count(world: World) -> None:
    """Rule 16: the late one's pause is refused as a whole."""
    place, late = world.started()
    world.forward(seconds=16)
    lease = world.leased(place, "n2")
    assert world.ask(lease, approval("c1")).code == "accepted"
    before = world.snapshot()
    with pytest.raises(StaleLease):
        world.ask(late, approval("c2"))
    assert changed(before, world.snapshot()) == []


@pytest.mark.report("RB18")
@shows_guard("replace")
def test_new_input_on_a_paused_thread_replaces_only_where_it_is_said(world: World) -> None:
    """Decisions: another point while waiting is a conflict; with `replace` the old questions are superseded."""
    place, (one,) = world.asked(approval("c1"))
    before = world.snapshot()
    assert world.suspend(world.pause(place, approval("c2"), seq=2)).code == "conflict"
    assert changed(before, world.snapshot()) == []
    assert world.suspend(world.pause(place, approval("c2"), seq=2, replace=True)).code == "accepted"
    two = world.run_address(place).interrupts[-1].interrupt
    assert [world.settled(i) for i in (one, two)] == ["superseded", "open"]
    assert world.answer(one).code == "superseded"
    assert world.answer(two).code == "accepted"
    assert world.leased(place, "n2").text("shown").split() == [two]


def test_interrupted_at_is_set_by_the_server(world: World) -> None:
    """Design section 2: in whole seconds of the server's clock; kept where the state brought its own."""
    world.forward(hours=5)
    place, _ids = world.asked()
    state = world.read(reads.read_state(world.p, place.run))
    assert state is not None
    assert state.interrupted_at is not None
    assert abs(state.interrupted_at - world.now() // 1_000_000) < 60


def test_any_json_is_an_answer(world: World) -> None:
    """F16: false, 0 and null are answers, not their absence."""
    payloads: tuple[object, ...] = (False, 0, None, [], {})
    for n, payload in enumerate(payloads):
        _place, (one,) = world.asked(Interrupt.question("value?"), name=f"run-{n}")
        world.answer(one, Respond(payload=payload))
        found = world.record(one).resolution
        assert found is not None
        assert found.answer == Respond(payload=payload)


PINNED = replace(POOL, build="b2")


def pinned(world: World, lease: Leased, *asked: Interrupt, **options: Any) -> tuple[str, ...]:
    """Pauses a leased run, which only workers of another build can go on with from then on."""
    at = Place(lease.token.run, lease.text("session"), PINNED, 0, b"")
    seq = int(lease.text("seq")) + 1
    outcome = world.suspend(world.pause(at, *asked, seq=seq, token=lease.token, **options))
    return tuple(getattr(outcome, "interrupt_ids", ()))


def ready(world: World, pool: Pool) -> list[bytes]:
    found: list[bytes] = world.client.zrange(world.key("ready", str(pool)), 0, -1)
    return found


@shows_guard("suspend-build")
def test_a_pause_pins_its_run_to_a_build(world: World) -> None:
    """Its worker knows only then what the frozen state is of."""
    place, lease = world.started()
    (one,) = pinned(world, lease, approval())
    assert world.answer(one).code == "accepted"
    assert (ready(world, POOL), ready(world, PINNED)) == ([], [place.run.encode()])


@shows_guard("carry-build")
def test_a_question_that_is_kept_follows_its_run_to_a_build(world: World) -> None:
    place, lease, (_answered, kept) = each(world)
    pinned(world, lease, approval("c3"), mode=Mode.EACH, keep=[kept])
    assert world.answer(kept).code == "accepted"
    assert ready(world, PINNED) == [place.run.encode()]
