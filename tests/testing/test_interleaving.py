"""Beyond 22: races whose order a seed decides; every order ends in one answer."""

from datetime import timedelta
from typing import Any

import pytest

from broker import Accepted, AnswerKind, Approve, Broker, Interrupt, Outcome, Principal, Reject, StaleLease
from broker.testing import Testbed

SEEDS = range(12)
OFFERS = (AnswerKind.APPROVE, AnswerKind.REJECT)


def asked(testbed: Testbed) -> str:
    """An open question with a deadline of an hour."""
    interrupt = Interrupt(payload="may I?", offers=OFFERS, expires_in=timedelta(hours=1))
    done = testbed.broker.suspend("agent", interrupt, session="s_1")
    return done.interrupt_ids[0]


def race(testbed: Testbed, seed: int) -> tuple[tuple[str, ...], dict[str, str]]:
    """Two people and a deadline: the order of their calls, and what each of the two was told."""
    question = asked(testbed)

    def ada(broker: Broker) -> Outcome:
        return broker.inbox.answer(question, Approve(), by=Principal.local("ada"))

    def bob(broker: Broker) -> Outcome:
        return broker.inbox.answer(question, Reject(reason="no"), by=Principal.local("bob"))

    def time(_: Broker) -> None:
        testbed.clock.advance(timedelta(hours=2))

    went = testbed.interleave(seed, ada=ada, bob=bob, time=time)
    return went.order, {name: went.results[name].code for name in ("ada", "bob")}


@pytest.mark.parametrize("seed", SEEDS)
def test_beyond_22_P4_P8_whatever_the_order_the_first_in_time_counts(testbed: Testbed, seed: int) -> None:
    order, told = race(testbed, seed)
    answers = [one.split()[0] for one in order if one.endswith("answer")]
    in_time = [name for name in answers if order.index(f"{name} answer") < order.index("time begins")]
    expected = (
        dict.fromkeys(("ada", "bob"), "expired")
        if not in_time
        else {name: "accepted" if name == in_time[0] else "already_decided" for name in ("ada", "bob")}
    )
    assert told == expected


def test_beyond_22_the_same_seed_is_the_same_race(testbed: Testbed) -> None:
    assert race(testbed, 7) == race(testbed, 7)


def test_seeds_reach_every_order_of_the_calls(testbed: Testbed) -> None:
    orders = {
        tuple(one for one in race(testbed, seed)[0] if not one.endswith("begins") or one.startswith("time"))
        for seed in range(40)
    }
    assert len(orders) == 6


def test_beyond_22_P6_a_worker_that_was_slow_is_refused(testbed: Testbed) -> None:
    """The lease ends between two calls of a worker in some order, and another one takes the run."""
    told: set[str] = set()
    for seed in range(30):
        run_id = testbed.broker.start("agent", seed, session="s_1").run_id

        def work(broker: Broker, run_id: str = run_id) -> Any:
            with broker.take(run_id) as run:
                return run.finish("slow")

        def take_back(broker: Broker, run_id: str = run_id) -> Any:
            testbed.clock.advance(timedelta(minutes=1))
            with broker.take(run_id) as run:
                return run.finish("fast")

        results = testbed.interleave(seed, slow=work, fast=take_back).results
        won = [name for name, one in results.items() if not isinstance(one, Exception)]
        assert testbed.broker.runs.get(run_id).result in won
        assert len(won) == 1
        told |= {type(one).__name__ for one in results.values() if isinstance(one, Exception)}
    assert StaleLease.__name__ in told


def test_a_fault_of_a_party_is_raised_when_all_have_ended(testbed: Testbed) -> None:
    ended = []

    def ada(broker: Broker) -> None:
        ended.append(broker.start("agent", session="s_1"))

    def bob(_: Broker) -> None:
        raise LookupError("bob")

    with pytest.raises(LookupError, match="bob"):
        testbed.interleave(1, ada=ada, bob=bob)
    assert isinstance(ended[0], Accepted)
