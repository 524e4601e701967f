"""Tokens for outsiders, at the front door: one interrupt or call, one purpose, and no longer than its question."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Broker,
    Complete,
    Interrupt,
    InvalidInput,
    OnExpiry,
    Parked,
    Pending,
    Principal,
    PrincipalKind,
    Replayed,
    Run,
    RunRecord,
    Settlement,
    Untrusted,
    Worker,
    current_call,
    long_running,
)
from broker.core.tokens import LONGEST, Purpose
from broker.testing import RunningServer, await_until

HOUR = timedelta(hours=1)
ADA = Principal(id="ada", groups=("refunds",))
ACTION = Action(tool="render", arguments={"n": 1})


async def job(broker: AsyncBroker, session: str = "s", **rest: Any) -> str:
    """An interrupt that waits for a job elsewhere."""
    asked = Interrupt.completion(ACTION, "call-1", "handle-77", **rest)
    return (await broker.suspend("studio", asked, session=session)).interrupt_ids[0]


async def approval(broker: AsyncBroker, session: str = "s", **rest: Any) -> str:
    asked = Interrupt.approval(ACTION, "call-1", **rest)
    return (await broker.suspend("studio", asked, session=session)).interrupt_ids[0]


async def refused(attempt: Awaitable[object]) -> str:
    with pytest.raises(Untrusted) as caught:
        await attempt
    return caught.value.reason


async def test_F41_a_job_is_completed_by_its_token(broker: AsyncBroker) -> None:
    one = await job(broker)
    made = await broker.tokens.create(one, Purpose.COMPLETE)
    assert made.text not in repr(made)
    assert isinstance(await broker.complete(made.text, {"url": "x"}), Accepted)
    ended = (await broker.inbox.get(one)).resolution
    assert ended is not None
    assert ended.answer == Complete(value={"url": "x"})
    assert ended.by is not None
    assert (ended.by.id, ended.by.kind, ended.by.verified) == (f"token:{made.token.id}", "service", True)
    assert isinstance(await broker.complete(made.text, {"url": "x"}), Replayed)
    assert isinstance(await broker.fail(made.text, "no"), AlreadyDecided)


async def test_a_job_is_never_completed_by_its_handle(broker: AsyncBroker) -> None:
    one = await job(broker)
    for handle in ("handle-77", "call-1"):
        with pytest.raises(Exception, match="There is no interrupt"):
            await broker.complete(handle, 1)
    assert (await broker.inbox.get(one)).state is Settlement.OPEN


async def test_F42_a_token_ends_with_its_question_or_before(broker: AsyncBroker) -> None:
    one = await job(broker, expires_in=HOUR)
    deadline = (await broker.inbox.get(one)).deadline
    assert deadline is not None
    for wanted in (None, HOUR * 5):
        made = await broker.tokens.create(one, Purpose.COMPLETE, expires_in=wanted)
        ends = made.token.expires_at
        assert ends is not None
        assert timedelta() <= deadline - ends < timedelta(seconds=2)
        assert (await broker.tokens.verify(made.text)).expires_at == ends
    sooner = (await broker.tokens.create(one, Purpose.COMPLETE, expires_in=HOUR / 2)).token.expires_at
    assert sooner is not None
    assert sooner < deadline - HOUR / 3


@pytest.mark.parametrize("rest", [{"expires_in": None}, {"expires_in": HOUR, "on_expiry": OnExpiry.WAIT}])
async def test_without_an_end_of_its_question_a_token_counts_a_day(
    broker: AsyncBroker, rest: dict[str, Any]
) -> None:
    """A deadline after which the question stays open is a reminder, and no end."""
    one = await job(broker, **rest)
    now = (await broker.inbox.get(one)).opened_at
    ends = (await broker.tokens.create(one, Purpose.COMPLETE)).token.expires_at
    assert ends is not None
    assert timedelta(hours=23) < ends - now < timedelta(hours=25)


async def test_F42_an_expired_token_does_nothing(broker: AsyncBroker) -> None:
    one = await job(broker)
    made = await broker.tokens.create(one, Purpose.COMPLETE, expires_in=timedelta(seconds=1))

    async def over() -> bool:
        try:
            await broker.tokens.verify(made.text)
        except Untrusted:
            return True
        return False

    await await_until(over)
    assert await refused(broker.complete(made.text, 1)) == "it has expired"
    assert (await broker.inbox.get(one)).state is Settlement.OPEN


async def test_F42_a_token_is_revoked_by_text_or_id(broker: AsyncBroker, server: RunningServer) -> None:
    one = await job(broker)
    texts = [await broker.tokens.create(one, Purpose.COMPLETE) for _ in range(3)]
    await broker.tokens.revoke(texts[0].text)
    await broker.tokens.revoke(texts[1].token.id)
    await broker.tokens.revoke(texts[1].token.id)
    async with AsyncBroker(server.url, namespace=broker.namespace) as other:
        for made in texts[:2]:
            assert await refused(other.complete(made.text, 1)) == "it was revoked"
        assert (await other.complete(texts[2].text, 1)).ok


async def test_revocations_are_forgotten_with_their_tokens(broker: AsyncBroker) -> None:
    one = await job(broker)
    brief = await broker.tokens.create(one, Purpose.COMPLETE, expires_in=timedelta(seconds=1))
    long = await broker.tokens.create(one, Purpose.COMPLETE)
    await broker.tokens.revoke(brief.text)

    async def kept() -> list[bytes]:
        await broker.tokens.revoke(long.text)
        (found,) = await broker._link.wire.read(
            (("ZRANGE", broker._link.space.partition(0).key("revoked"), 0, -1),)
        )
        return list(found)

    async def swept() -> bool:
        return await kept() == [long.token.id.encode()]

    await await_until(swept)


async def test_F41_a_token_counts_for_its_purpose_only(broker: AsyncBroker) -> None:
    one = await job(broker)
    beat = (await broker.tokens.create(one, "heartbeat")).text
    assert "not to complete" in await refused(broker.complete(beat, 1))
    decide = (await broker.tokens.create(await approval(broker, "s2"), "decide", for_=ADA)).text
    assert "not to complete" in await refused(broker.fail(decide, "x"))
    assert (await broker.tokens.verify(decide, Purpose.DECIDE)).principal.groups == ("refunds",)
    assert (await broker.inbox.get(one)).state is Settlement.OPEN


async def test_F41_another_namespace_refuses_it(
    broker: AsyncBroker, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """Also where the same session and call exist there."""
    made = await broker.tokens.create(await job(broker), Purpose.COMPLETE)
    async with AsyncBroker(server.url, namespace=new_namespace()) as other:
        mine = await job(other)
        await other.signing.rotate()
        before = contents(server, other)
        assert "forged" in await refused(other.complete(made.text, 1))
        assert contents(server, other) == before
        assert (await other.inbox.get(mine)).state is Settlement.OPEN


def contents(server: RunningServer, broker: AsyncBroker) -> dict[bytes, bytes]:
    """Everything a namespace holds, as bytes, but for how often somebody asked."""
    with redis.Redis.from_url(server.url) as client:
        names = [
            key for key in client.scan_iter(match=f"{{{broker.namespace}*") if b"}:vault-rates:" not in key
        ]
        return {key: client.dump(key) for key in names}


async def test_a_forged_token_writes_nothing_and_is_on_record(
    broker: AsyncBroker, server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await job(broker)
    made = await broker.tokens.create(one, Purpose.COMPLETE)
    head, body, sign = made.text.split(".")
    before = contents(server, broker)
    with caplog.at_level(logging.WARNING, "broker.tokens"):
        for forged in (f"{head}.{body}.", f"{head}.{body}.{sign[::-1]}", "brt_", "brt_x.y.z"):
            await refused(broker.complete(forged, 1))
        await refused(broker.tokens.verify("tok_" + "A" * 60))
        await refused(broker.tokens.verify("nothing"))
    assert contents(server, broker) == before
    assert len(caplog.records) == 6
    assert made.text not in caplog.text
    assert sign not in caplog.text


async def test_a_single_use_token_counts_while_its_interrupt_is_open(broker: AsyncBroker) -> None:
    """Also where somebody else was first."""
    one, two = await job(broker), await job(broker, "s2")
    first = await broker.tokens.create(one, Purpose.COMPLETE, single_use=True)
    assert (await broker.complete(first.text, 1)).ok
    assert "for one use" in await refused(broker.complete(first.text, 1))
    second = await broker.tokens.create(two, Purpose.COMPLETE, single_use=True)
    assert (await broker.complete(two, 1, by=ADA)).ok
    assert "for one use" in await refused(broker.complete(second.text, 1))


async def test_a_wrong_shaped_answer_uses_no_single_use_token(broker: AsyncBroker) -> None:
    one = await job(broker, response_schema={"type": "object", "required": ["url"]})
    made = await broker.tokens.create(one, Purpose.COMPLETE, single_use=True)
    assert (await broker.complete(made.text, {"banana": 1})).code == "invalid"
    assert (await broker.complete(made.text, {"url": "x"})).ok


async def test_F43_an_agent_gets_no_token_to_decide(broker: AsyncBroker) -> None:
    one = await approval(broker)
    with pytest.raises(InvalidInput, match="for_ is of kind agent"):
        await broker.tokens.create(one, "decide", for_=Principal(id="bot", kind=PrincipalKind.AGENT))


async def test_what_makes_no_sense_is_refused(broker: AsyncBroker) -> None:
    one, asked = await job(broker), await approval(broker, "s2")
    for to, purpose, rest, field in (
        (one, "decide", {}, "purpose"),
        (asked, "complete", {}, "purpose"),
        (asked, "delete", {}, "purpose"),
        (one, "complete", {"expires_in": LONGEST * 2}, "expires_in"),
        (one, "complete", {"expires_in": timedelta()}, "expires_in"),
    ):
        with pytest.raises(InvalidInput) as fault:
            await broker.tokens.create(to, purpose, **rest)  # type: ignore[arg-type]
        assert fault.value.field == field
    assert (await broker.inbox.answer(asked, Approve(), by=ADA)).ok
    with pytest.raises(InvalidInput, match="to is resolved"):
        await broker.tokens.create(asked, "decide")


async def test_a_call_is_completed_by_a_token_made_before_its_run_pauses(
    broker: AsyncBroker, server: RunningServer
) -> None:
    """The result that comes before the question is kept; the token that the call was given counts as well."""
    told: list[Any] = []

    @long_running
    async def render(prompt: str) -> Pending:
        call = current_call()
        limited = await broker.tokens.create(call.token, "heartbeat")
        told.append(await refused(broker.complete(limited.text, 1)))
        made = await broker.tokens.create(call.token, "complete", for_=ADA)
        told.append(await broker.complete(made.text, f"seen {prompt}"))
        told.append((await broker.tokens.verify(call.token, Purpose.COMPLETE)).about.call_id)
        with pytest.raises(InvalidInput, match="single_use"):
            await broker.tokens.create(call.token, "complete", single_use=True)
        return Pending(handle="job-9")

    worker = Worker(server.url, namespace=broker.namespace)

    @worker.agent("studio")
    async def studio(run: Run[None]) -> Any:
        return await run.call(render, {"prompt": "a cat"}, call_id="c-1")

    task = asyncio.create_task(worker.serve())
    started = await broker.start("studio", session="s")
    ended = await broker.wait(started.run_id, 20)
    worker.stop()
    await task
    assert isinstance(ended, RunRecord)
    assert ended.result == "seen a cat"
    assert "not to complete" in told[0]
    assert isinstance(told[1], Parked)
    assert told[2] == "c-1"


def test_the_blocking_broker_has_tokens_too(server: RunningServer, namespace: str) -> None:
    with Broker(server.url, namespace=namespace) as broker:
        one = broker.suspend("studio", Interrupt.completion(ACTION, "c"), session="s").interrupt_ids[0]
        text = broker.tokens.create(one, "complete").text
        assert broker.complete(text, None).ok
