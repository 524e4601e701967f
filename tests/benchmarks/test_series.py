"""The measures that are series of lifecycles, each at its tiny size, on real servers and in real processes."""

from tests.benchmarks.measuring import taken


def test_one_call_at_a_time() -> None:
    assert set(taken("sync_call").measures) == {"sync_call"}


def test_a_second_process_of_each_role() -> None:
    found = taken("scale_out")
    plans = found.series["scale_out"]["plans"]
    assert [plan["pairs"] for plan in plans.values()] == [1, 2, 1, 2]


def test_a_fleet_of_workers_on_the_queue() -> None:
    found = taken("fleet_1000")
    plan = found.series["fleet_1000"]["plans"]["broker:fleet"]
    assert (plan["resumers"], plan["workers"]) == (2, 4)


def test_every_write_on_the_disk() -> None:
    found = taken("durable")
    plans = found.series["durable"]["plans"]
    assert [plan["appendfsync"] for plan in plans.values()] == ["everysec", "always", "always", "always"]
    assert found.details["durable: one SET"]["redis-set"]["p50 ms"]["median"] > 0


def test_lifecycles_while_others_are_open() -> None:
    """Off: open fewer others than were wanted, or answer whatever is open: the trial fails."""
    found = taken("growth_100k")
    assert {"growth_100k", "growth_100k_server_cpu"} <= set(found.measures)
    for one in found.series["growth_100k"]["variants"].values():
        assert one["facts"]["unfinished"]["high"] == 0
