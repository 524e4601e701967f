"""Notices by Apprise: a link to the inbox, and nothing that decides (F49)."""

import asyncio
import json
from datetime import timedelta

import pytest

from broker import AsyncBroker, InvalidInput
from broker.gateway.notify import Notifier, NotifySettings
from broker.testing import await_until

from .receiver import receiving
from .test_events import ask


async def test_F49_people_are_told_where_to_look(broker: AsyncBroker) -> None:
    async with receiving() as receiver:
        target = receiver.url.replace("http://", "json://")
        how = NotifySettings((target,), "https://inbox.example/", label="money", lease=timedelta(seconds=1))
        assert "json://" not in repr(how)
        task = asyncio.create_task(Notifier(broker, how).run())
        await await_until(lambda: broker.events.position("notify"))
        one = await ask(broker, message="<b>hurry</b>")
        await await_until(lambda: receiver.received)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (notice,) = receiver.received
    said = json.dumps(notice.json)
    assert notice.json["title"] == "airline asks: refund"
    assert f"https://inbox.example/interrupts/{one}" in notice.json["message"]
    assert "4711" not in said
    assert "hurry" not in said
    assert "brt_" not in said


async def test_P12_a_target_that_is_none(broker: AsyncBroker) -> None:
    with pytest.raises(InvalidInput, match=r"targets\[1\]"):
        Notifier(broker, NotifySettings(("json://localhost", "nonsense"), "https://inbox.example"))
