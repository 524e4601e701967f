"""P1 to P9 and the protocol's rules: whatever happens in the life of a run, the server does what the protocol says.

Everything is the same each time. To look further, raise LIVES; a failure tells the whole life as a list of requests.
"""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from broker.store.scripts import Rendering
from broker.testing import RunningServer

from .client import Client
from .machine import SETTINGS, Life
from .stage import Disagreement, Stage
from .table import Table

LIVES = 8
FEW = settings(
    max_examples=10,
    stateful_step_count=60,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""Ten lives for each of some seeds: after its first ten examples, Hypothesis mostly varies those it has made."""
BUGGY = 1
NO_SHRINKING = settings(FEW, max_examples=300, phases=[Phase.generate], report_multiple_bugs=False)

SEEDED = {
    "decided": r"^Answer.* was told .*, should be told \('(already_decided|expired|withdrawn|superseded)'",
    "fence": r"^\w+\(.*lease \d+ n\d+.* was told .*, should be told \('stale_lease'",
    "own-op": r"^Answer.* was told .*, should be told \('replayed'",
    "withdraw-op": r"^Withdraw.* was told .*, should be told \('replayed'",
}
"""A guard that is left out of the scripts -> what the machine says of the bug that this makes."""


def live(
    server: RunningServer,
    new_namespace: Callable[[], str],
    number: int,
    how: settings,
    without: str | None = None,
) -> Table:
    """Ten lives, the same for the same number; gives the protocol's table, which knows what they came by."""
    table, rendering = Table(), Rendering(clock=True, without=without)
    client = Client(server.url, new_namespace(), rendering, SETTINGS)
    client.load()
    client.close()

    @seed(number)
    def begin() -> Life:
        return Life(lambda: Stage(server.url, new_namespace(), rendering, SETTINGS, table))

    run_state_machine_as_test(begin, settings=how)  # type: ignore[arg-type]  # it takes any callable
    return table


@pytest.mark.parametrize("number", range(LIVES))
def test_a_life_is_as_the_protocol_says(
    number: int, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    table = live(server, new_namespace, number, FEW)
    assert len(table.asked) > 60  # it came by that many rows of the table


@pytest.mark.parametrize("guard", SEEDED)
def test_a_bug_that_is_put_in_is_found(
    guard: str, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """Mostly within ten lives, in three hundred for certain; and the machine says what is wrong."""
    with pytest.raises(Disagreement) as found:
        live(server, new_namespace, BUGGY, NO_SHRINKING, without=guard)
    assert re.search(SEEDED[guard], str(found.value)), str(found.value).partition("\n")[0]
