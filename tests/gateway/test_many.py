"""Any number of gateways, as processes of their own behind one list of clients: each can die at any moment."""

import asyncio
import random
from collections.abc import Callable

import httpx
import pytest

from broker import Action, AsyncBroker, Interrupt, Principal
from broker.core.access import ApiRole
from broker.testing import RunningServer

from .processes import gateway_process

YES = {"answer": {"kind": "approve"}}
QUESTIONS = 150
AT_ONCE = httpx.Limits(max_connections=16)


async def asked(broker: AsyncBroker, count: int) -> list[str]:
    outcomes = await asyncio.gather(*[
        broker.suspend("shop", Interrupt.approval(Action(tool="refund", arguments={"n": n}), "c"), session=f"s{n}")
        for n in range(count)
    ])  # fmt: skip
    return [one.interrupt_ids[0] for one in outcomes]


@pytest.mark.timeout(180)
async def test_P4_a_gateway_dies_amid_answers_and_the_repeats_at_another_are_replays(
    server: RunningServer, namespace: str
) -> None:
    """Nothing lost, nothing twice: each question has the one answer, and each caller knows what became of theirs.

    Off: the same operation at each repeat (one of an answer that got through is then told of a winner).
    """
    seed = random.randrange(10**6)
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        ids = await asked(broker, QUESTIONS)
        key = (await broker.keys.create(Principal(id="ada"), ApiRole.REVIEWER)).text
        other = (await broker.keys.create(Principal(id="bob"), ApiRole.REVIEWER)).text
        with gateway_process(server.url, namespace) as one, gateway_process(server.url, namespace) as two:
            told, lost = await _answered(
                one.url, two.url, key, ids, random.Random(seed).randrange(5, 60), one.kill
            )
            async with httpx.AsyncClient(
                base_url=two.url, headers={"Authorization": f"Bearer {other}"}
            ) as bob:
                second = [await bob.post(f"/v1/interrupts/{one}/answer", json=YES) for one in ids]
        assert lost, f"seed {seed}: nothing was under way when the gateway died"
        assert {code for codes in told.values() for code in codes} <= {"accepted", "replayed"}, f"seed {seed}"
        assert all(codes.count("accepted") <= 1 for codes in told.values())
        assert {(came.status_code, came.json()["outcome"]["winner"]["by"]["id"]) for came in second} == {
            (409, "ada")
        }
        for found in [await broker.inbox.get(one) for one in ids]:
            assert found.resolution is not None
            assert found.resolution.by is not None
            assert found.resolution.by.id == "ada"
        # each once in the books
        for n in range(QUESTIONS):
            events = [entry.event for entry in await broker.history(f"s{n}")]
            assert events.count("answered") + events.count("resolved") == 1, events


async def _answered(
    first: str, second: str, key: str, ids: list[str], after: int, kill: Callable[[], None]
) -> tuple[dict[str, list[str]], list[str]]:
    """What each answer was told, at the first gateway and then again at the second; and those that got no reply."""
    told: dict[str, list[str]] = {one: [] for one in ids}
    lost: list[str] = []
    replies = 0
    headers = {"Authorization": f"Bearer {key}"}

    async def press(client: httpx.AsyncClient, one: str) -> None:
        nonlocal replies
        try:
            came = await client.post(
                f"/v1/interrupts/{one}/answer", json=YES, headers={"Idempotency-Key": f"press-{one}"}
            )
        except httpx.TransportError:
            lost.append(one)
            return
        told[one].append(came.json()["code"])
        replies += 1
        if replies == after:
            kill()  # at once: the loop waits, so what is under way has no reply yet

    async with httpx.AsyncClient(base_url=first, headers=headers, limits=AT_ONCE, timeout=60) as client:
        await asyncio.gather(*[press(client, one) for one in ids])
    failed = list(lost)
    async with httpx.AsyncClient(base_url=second, headers=headers, limits=AT_ONCE, timeout=60) as client:
        await asyncio.gather(*[press(client, one) for one in ids])
    assert lost == failed
    return told, lost
