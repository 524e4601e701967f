"""Webhooks in: signed requests that complete a job or answer (F41, F43)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Complete,
    Fail,
    Interrupt,
    InvalidInput,
    Principal,
    PrincipalKind,
    Settlement,
)
from broker.core.intakes import Does

from .site import Site

RENDER = Principal(id="render-farm", kind=PrincipalKind.SERVICE)


async def job(broker: AsyncBroker, session: str = "s") -> str:
    asked = Interrupt.completion(Action(tool="render", arguments={}), "call-1", "j-17")
    return (await broker.suspend("films", asked, session=session)).interrupt_ids[0]


def signed(
    secret: str, said: Any, *, id: str = "msg_1", at: datetime | None = None, stamp: str | None = None
) -> dict[str, Any]:  # fmt: skip
    body = said if isinstance(said, str) else json.dumps(said)
    at = at or datetime.now(UTC)
    headers = {
        "webhook-id": id, "webhook-timestamp": stamp or str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(id, at, body), "content-type": "application/json",
    }  # fmt: skip
    return {"content": body, "headers": headers}


async def post(site: Site, request: dict[str, Any], name: str = "farm") -> httpx.Response:
    async with site.client() as client:
        return await client.post(f"/v1/intake/{name}", **request)


async def test_F41_a_job_is_completed_by_a_signed_request(site: Site) -> None:
    new = await site.broker.intakes.create(
        "farm", RENDER, to="job.token", value="job.file", error="job.error"
    )
    assert new.secret not in repr(new)
    assert new.secret not in str([one.to_json() for one in await site.broker.intakes.list()])
    one, two = await job(site.broker, "one"), await job(site.broker, "two")
    done = await post(site, signed(new.secret, {"job": {"token": one, "file": "a.mp4"}}))
    assert (done.status_code, done.json()["code"]) == (200, "accepted")
    ended = (await site.broker.inbox.get(one)).resolution
    assert ended is not None
    assert ended.by is not None
    assert (ended.answer, ended.by.id, ended.by.verified) == (Complete(value="a.mp4"), "render-farm", True)
    failed = await post(site, signed(new.secret, {"job": {"token": two, "error": "out of disk"}}, id="msg_2"))
    assert failed.status_code == 200
    ended = (await site.broker.inbox.get(two)).resolution
    assert ended is not None
    assert ended.answer == Fail(error="out of disk")


async def test_F41_the_same_request_counts_once_and_a_repeat_of_the_sender_has_its_outcome(
    site: Site,
) -> None:
    new = await site.broker.intakes.create("farm", RENDER)
    one = await job(site.broker)
    first = signed(new.secret, {"to": one, "value": 1})
    assert (await post(site, first)).status_code == 200
    assert (await post(site, first)).status_code == 409
    # The signature is of whole seconds; no other way to write them gets it through again.
    for stamp in ("0" + first["headers"]["webhook-timestamp"], first["headers"]["webhook-timestamp"] + ".5"):
        again = {**first, "headers": {**first["headers"], "webhook-timestamp": stamp}}
        assert (await post(site, again)).status_code in (401, 409)
    later = datetime.now(UTC) + timedelta(seconds=2)
    repeat = await post(site, signed(new.secret, {"to": one, "value": 1}, at=later))
    assert (repeat.status_code, repeat.json()["code"]) == (200, "replayed")


FORGED: dict[str, dict[str, Any]] = {
    "old": {"at": datetime.now(UTC) - timedelta(minutes=30)},
    "early": {"at": datetime.now(UTC) + timedelta(hours=2)},
    "other time": {"stamp": "1"},
    "no time": {"stamp": "x"},
}


@pytest.mark.parametrize("how", FORGED.values(), ids=FORGED.keys())
async def test_F43_a_request_of_another_time_counts_nothing(site: Site, how: dict[str, Any]) -> None:
    new = await site.broker.intakes.create("farm", RENDER)
    one = await job(site.broker)
    assert (await post(site, signed(new.secret, {"to": one, "value": 1}, **how))).status_code == 401
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


async def test_F43_a_forged_request_counts_nothing(site: Site) -> None:
    new = await site.broker.intakes.create("farm", RENDER)
    other = await site.broker.intakes.create("other", RENDER)
    one = await job(site.broker)
    good = signed(new.secret, {"to": one, "value": 1})
    tampered = {**good, "content": good["content"].replace("1}", "2}")}
    unsigned = {**good, "headers": {"content-type": "application/json"}}
    garbled = {**good, "headers": {**good["headers"], "webhook-signature": "v1 v2,x"}}
    for request in (tampered, unsigned, garbled, signed(other.secret, {"to": one, "value": 1})):
        assert (await post(site, request)).status_code == 401
    for name in ("nobody", "farm%20", "x" * 300):
        assert (await post(site, good, name)).status_code == 401
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN
    assert (await post(site, good)).status_code == 200


async def test_an_intake_answers_where_it_was_made_to(site: Site) -> None:
    new = await site.broker.intakes.create("erp", RENDER, does=Does.ANSWER, to="ticket", answer="decision")
    asked = Interrupt.approval(Action(tool="refund", arguments={}), "call-1")
    one = (await site.broker.suspend("airline", asked, session="s")).interrupt_ids[0]
    done = await post(site, signed(new.secret, {"ticket": one, "decision": {"kind": "approve"}}), "erp")
    assert done.status_code == 200, done.text
    ended = (await site.broker.inbox.get(one)).resolution
    assert ended is not None
    assert ended.answer == Approve()


async def test_F43_no_agent_answers_and_no_job_service_decides(site: Site) -> None:
    agent = Principal(id="bot", kind=PrincipalKind.AGENT)
    with pytest.raises(InvalidInput, match="by"):
        await site.broker.intakes.create("erp", agent, does=Does.ANSWER)
    new = await site.broker.intakes.create("farm", RENDER)
    with pytest.raises(InvalidInput, match="taken"):
        await site.broker.intakes.create("farm", RENDER)
    asked = Interrupt.approval(Action(tool="refund", arguments={}), "call-1")
    one = (await site.broker.suspend("airline", asked, session="s")).interrupt_ids[0]
    refused = await post(site, signed(new.secret, {"to": one, "value": True}))
    assert refused.status_code >= 400
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


@pytest.mark.parametrize(
    ("said", "status"),
    [("{", 400), ("[1]", 422), ({"value": 1}, 422), ({"to": 7, "value": 1}, 422), ({"to": "int_x"}, 422)],
)  # fmt: skip
async def test_P12_bodies_that_say_nothing(site: Site, said: Any, status: int) -> None:
    new = await site.broker.intakes.create("farm", RENDER)
    assert (await post(site, signed(new.secret, said))).status_code == status


async def test_F42_the_secret_of_an_intake_is_rotated(site: Site) -> None:
    old = await site.broker.intakes.create("farm", RENDER)
    new = await site.broker.intakes.rotate("farm", overlap=timedelta(hours=1))
    for number, secret in enumerate((old.secret, new.secret)):
        one = await job(site.broker, f"s{number}")
        assert (await post(site, signed(secret, {"to": one, "value": 1}, id=f"m{number}"))).status_code == 200
    last = await site.broker.intakes.rotate("farm", overlap=timedelta())
    one = await job(site.broker, "last")
    assert (await post(site, signed(new.secret, {"to": one, "value": 1}, id="a"))).status_code == 401
    assert (await post(site, signed(last.secret, {"to": one, "value": 1}, id="b"))).status_code == 200
    await site.broker.intakes.delete("farm")
    assert (await post(site, signed(last.secret, {"to": one, "value": 1}, id="c"))).status_code == 401
