"""F50: what a gateway tells Prometheus: levels with their ages, what it has sent, its requests; RA54: age, not rate."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker import Action, Approve, AsyncBroker, Durability, Interrupt, Principal, Reject, Settings
from broker.core.access import ApiRole
from broker.gateway import GatewaySettings
from broker.telemetry.metrics import DEAD, GAUGES, METRICS, Sort
from broker.testing import FaultProxy, RunningServer, ServerProcess, await_until
from broker.worker.sweeper import Sweeper

from .site import Site, serving
from .test_answering import asked

FRESH = GatewaySettings(metrics_seconds=0, public_metrics=True)


@pytest.fixture
async def site(broker: AsyncBroker) -> AsyncGenerator[Site]:
    async with serving(broker, settings=FRESH) as site:
        yield site


class Scraped:
    """The samples of one scrape, by name and labels."""

    def __init__(self, text: str) -> None:
        self.families = {one.name: one for one in text_string_to_metric_families(text)}
        self.samples = [sample for one in self.families.values() for sample in one.samples]

    def __call__(self, name: str, **labels: str) -> float | None:
        found = [one.value for one in self.samples if one.name == name and one.labels == labels]
        return found[0] if found else None


async def scrape(site: Site) -> Scraped:
    async with site.client() as anybody:
        answer = await anybody.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return Scraped(answer.text)


async def test_F50_levels_and_ages_are_those_of_the_namespace(site: Site) -> None:
    broker = site.broker
    first = await scrape(site)
    assert (first("broker_up"), first("broker_open_interrupts"), first("broker_oldest_open_seconds")) == (
        1,
        0,
        0,
    )
    interrupt_id = await asked(broker)
    run_id = (await broker.start("shop", session="t", queue="slow")).run_id or ""
    older = await scrape(site)
    assert older("broker_open_interrupts") == 1
    assert older("broker_ready_runs", queue="slow", agent="shop") == 1
    age, backlog = older("broker_oldest_open_seconds"), older("broker_backlog_age_seconds", queue="slow")
    assert age is not None
    assert backlog is not None

    async def aged() -> bool:
        now = await scrape(site)
        oldest, waits = now("broker_oldest_open_seconds"), now("broker_backlog_age_seconds", queue="slow")
        return (oldest or 0) > age + 0.05 and (waits or 0) > backlog + 0.05

    await await_until(aged, what="the ages grow")
    await broker.inbox.answer(interrupt_id, Approve(), by=Principal.local("ada"))
    async with broker.take(run_id) as run:
        await run.fail("Broken", final=True)
    after = await scrape(site)
    assert (after("broker_open_interrupts"), after("broker_oldest_open_seconds")) == (0, 0)
    assert after("broker_ready_runs", queue="slow", agent="shop") == 0
    assert after("broker_backlog_age_seconds", queue="slow") == 0
    assert after("broker_dead_runs") == 1
    answered = after("broker_backlog_age_seconds", queue="agents")
    assert answered is not None
    assert answered < age + 5, "it is ready since it was answered"


async def test_F50_answers_are_counted_by_what_became_of_them_and_decisions_are_timed(site: Site) -> None:
    interrupt_id = await asked(site.broker)
    by = Principal.local("ada")
    await site.broker.inbox.answer(interrupt_id, Approve(), by=by)
    await site.broker.inbox.answer(interrupt_id, Reject(reason="no"), by=by)
    found = await scrape(site)
    assert found("broker_answers_total", outcome="accepted") == 1
    assert found("broker_answers_total", outcome="already_decided") == 1
    assert found("broker_decision_seconds_count") == 1
    assert found("broker_decision_seconds_bucket", le="300.0") == 1
    assert found("broker_operations_total", operation="suspend", outcome="accepted") == 1


async def test_F50_an_expiry_is_counted_by_whoever_carries_it_out(site: Site) -> None:
    question = Interrupt.approval(
        Action(tool="refund", arguments={}), "c", expires_in=timedelta(milliseconds=50)
    )
    await site.broker.suspend("shop", question, session="s")
    sweeping = asyncio.create_task(Sweeper(site.broker, name="here").run())

    async def expired() -> bool:
        return (await scrape(site))("broker_expired_total") == 1

    await await_until(expired, what="an expiry")
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


async def test_F50_what_did_not_reach_the_disk_in_time_is_counted(
    start_server: Callable[..., ServerProcess],
) -> None:
    server = start_server({"appendfsync": "always"})
    settings = Settings(durability=Durability.fsynced(), confirm_within=timedelta(seconds=1))
    async with (
        AsyncBroker(server.url, settings=settings) as broker,
        serving(broker, settings=FRESH) as site,
    ):
        interrupt_id = await asked(broker)
        assert (await scrape(site))("broker_durability_misses_total", operation="suspend") is None
        server.call("CONFIG", "SET", "appendfsync", "no")
        missed = await broker.inbox.answer(interrupt_id, Approve(), by=Principal.local("ada"))
        assert missed.code == "not_durable"
        assert (await scrape(site))("broker_durability_misses_total", operation="answer") == 1


async def test_requests_are_counted_by_their_route_and_no_id_is_a_label(site: Site) -> None:
    interrupt_id = await asked(site.broker)
    async with site.client(await site.key()) as ada:
        assert (await ada.get(f"/v1/interrupts/{interrupt_id}")).status_code == 200
        assert (await ada.get("/nowhere-4711")).status_code == 404
    found = await scrape(site)
    route = "/v1/interrupts/{interrupt_id}"
    assert found("broker_http_requests_total", method="GET", route=route, code="200") == 1
    assert found("broker_http_requests_total", method="GET", route="none", code="404") == 1
    assert found("broker_http_request_seconds_count", method="GET", route=route) == 1
    assert found("broker_http_requests_in_flight") == 1, "the scrape itself"
    labels = repr([one.labels for one in found.samples])
    assert interrupt_id not in labels
    assert "4711" not in labels


async def test_the_table_names_what_is_told_and_nothing_else_is_told(site: Site) -> None:
    found = await scrape(site)
    table = {one.name.removesuffix("_total"): one.sort.value for one in METRICS}
    told = {name: one.type for name, one in found.families.items() if not name.endswith("_created")}
    assert told == table
    assert all(one.buckets for one in METRICS if one.sort is Sort.HISTOGRAM)


async def test_F43_the_metrics_want_a_key_that_may_read(broker: AsyncBroker) -> None:
    async with serving(broker) as site:
        for key, status in (
            (None, 401),
            (await site.key("job", ApiRole.SERVICE, kind="service"), 403),
            (await site.key("prometheus", ApiRole.VIEWER, kind="service"), 200),
        ):
            async with site.client(key) as client:
                assert (await client.get("/metrics")).status_code == status


async def test_a_storm_of_scrapes_costs_one_reading(broker: AsyncBroker) -> None:
    settings = GatewaySettings(metrics_seconds=3600, public_metrics=True)
    async with serving(broker, settings=settings) as site:
        before = await asyncio.gather(*(scrape(site) for _ in range(20)))
        await asked(broker)
        after = await scrape(site)
    assert {one("broker_open_interrupts") for one in (*before, after)} == {0}
    assert after("broker_operations_total", operation="suspend", outcome="accepted") == 1, (
        "counts are never old"
    )


async def test_without_its_server_it_says_so_and_tells_no_old_levels(
    server: RunningServer, namespace: str
) -> None:
    with FaultProxy(server.url) as proxy:
        async with (
            AsyncBroker(proxy.url, namespace=namespace, patience=0.2) as broker,
            serving(broker, settings=FRESH) as site,
        ):
            assert (await scrape(site))("broker_up") == 1
            proxy.refuse()
            proxy.cut()
            found = await scrape(site)
            assert found("broker_up") == 0
            assert {one.name for one in GAUGES} & found.families.keys() == {"broker_up"}
            proxy.restore()
            back = await scrape(site)
            assert (back("broker_up"), back(DEAD.name)) == (1, 0)
