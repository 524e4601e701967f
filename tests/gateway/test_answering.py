"""The way of one question: listed, shown, answered once, and the second answer told who was first."""

import pytest

from broker import Action, AsyncBroker, Interrupt, Settlement
from broker.core.access import ApiRole

from .site import Site


async def asked(broker: AsyncBroker) -> str:
    question = Interrupt.approval(Action(tool="refund", arguments={"cents": 5}), "call-1")
    return (await broker.suspend("shop", question, session="s")).interrupt_ids[0]


async def test_F10_F11_the_first_answer_counts_and_the_second_is_told_who_was_first(site: Site) -> None:
    interrupt_id = await asked(site.broker)
    async with site.client(await site.key("ada")) as ada, site.client(await site.key("bob")) as bob:
        (row,) = (await ada.get("/v1/interrupts")).json()["items"]
        assert row["id"] == interrupt_id
        shown = (await ada.get(f"/v1/interrupts/{interrupt_id}")).json()
        answer = {"answer": {"kind": "approve"}, "seen": shown["digest"]}
        first = await ada.post(f"/v1/interrupts/{interrupt_id}/answer", json=answer)
        assert (first.status_code, first.json()["code"]) == (200, "accepted")
        second = await bob.post(
            f"/v1/interrupts/{interrupt_id}/answer", json={"answer": {"kind": "reject", "reason": "no"}}
        )
        assert second.status_code == 409
        assert second.headers["content-type"] == "application/problem+json"
        assert second.json()["outcome"]["winner"]["by"]["id"] == "ada"


@pytest.mark.report("RA37")
async def test_F43_the_decider_is_who_the_key_says(site: Site) -> None:
    interrupt_id = await asked(site.broker)
    body = {"answer": {"kind": "approve", "metadata": {"by": "mallory"}}, "by": {"id": "mallory"}}
    async with site.client(await site.key("ada")) as ada:
        refused = await ada.post(f"/v1/interrupts/{interrupt_id}/answer", json=body)
        assert (refused.status_code, refused.json()["field"]) == (422, "by")
        del body["by"]
        assert (await ada.post(f"/v1/interrupts/{interrupt_id}/answer", json=body)).status_code == 200
    settled = await site.broker.inbox.get(interrupt_id)
    assert settled.resolution is not None
    assert settled.resolution.by is not None
    assert (settled.resolution.by.id, settled.resolution.by.verified) == ("ada", True)


async def test_an_agent_never_answers(site: Site) -> None:
    """Also with a key that it may list and start runs with."""
    interrupt_id = await asked(site.broker)
    async with site.client(await site.key("bot", ApiRole.AGENT, kind="agent")) as bot:
        answer = {"answer": {"kind": "approve"}}
        assert (await bot.post(f"/v1/interrupts/{interrupt_id}/answer", json=answer)).status_code == 403
    assert (await site.broker.inbox.get(interrupt_id)).state is Settlement.OPEN
