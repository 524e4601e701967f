from collections.abc import Callable
from contextvars import copy_context

import pytest

from broker.core.places import Places
from broker.errors import InvalidInput


def in_task(work: Callable[[], object]) -> None:
    """Runs something as a task of its own does: with a copy of what is known here."""
    copy_context().run(work)


def test_one_task_counts() -> None:
    places, me = Places(), object()
    assert [places.take(me) for _ in range(3)] == ["0", "1", "2"]


def test_a_task_counts_under_the_number_it_took_first() -> None:
    def tour() -> list[str]:
        places, me, first, second = Places(), object(), object(), object()
        found = [places.take(me)]
        for task in (first, second):
            in_task(lambda task=task: found.extend([places.take(task), places.take(task)]))  # type: ignore[misc]
        return [*found, places.take(me)]

    assert tour() == tour() == ["0", "1.0", "1.1", "2.0", "2.1", "3"]


def test_tasks_of_tasks_have_longer_paths() -> None:
    places, me, child, grandchild = Places(), object(), object(), object()
    found: list[str] = []

    def inner() -> None:
        found.append(places.take(child))
        in_task(lambda: found.append(places.take(grandchild)))

    places.take(me)
    in_task(inner)
    assert found == ["1.0", "1.1.0"]


def test_what_is_inside_takes_nothing_from_outside() -> None:
    """What a step does inside is not entered again when the step has its result."""
    places, me = Places(), object()
    outer = places.take(me)
    with places.inside(outer):
        assert [places.take(me), places.take(me)] == ["0/0", "0/1"]
    assert places.take(me) == "1"


def test_two_runs_in_one_task_count_apart() -> None:
    one, two, me = Places(), Places(), object()
    assert [one.take(me), two.take(me), one.take(me), two.take(me)] == ["0", "0", "1", "1"]


def test_a_checkpoint_is_before_every_place() -> None:
    assert Places("3/").take(object()) == "3/0"


def test_without_an_order_only_the_first_may_go_without_a_name() -> None:
    places, first = Places(ordered=False), object()
    places.take(first)
    with pytest.raises(InvalidInput):
        places.take(object())
    assert places.take(first) == "1"
