"""A namespace to be refused in, and what every refusal has in common (P12, P13)."""

import traceback
from collections.abc import Awaitable
from typing import Any

from broker import AsyncBroker
from broker.core.models import Action, Interrupt
from broker.errors import BrokerError, Refused

from .snapshot import changed
from .world import World, approval, completion

CANARY = "canary-5c1f9e"
"""In every argument, payload and secret here, and nowhere that anybody looks."""
SECRET = {"card": CANARY, "amount": 40}
SCHEMA = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "integer"}}, "note": {"const": "x"}},
    "required": ["items"],
}


class Setting:
    """A namespace with one run that waits for a gate, a form and a job, and one that is leased to this test."""

    def __init__(self, broker: AsyncBroker, world: World) -> None:
        self.broker = broker
        self.world = world
        self.gate = self.form = self.job = self.waiting = ""
        self.run: Any = None

    async def prepare(self) -> None:
        """Makes what the tests need."""
        gate = approval("c1", message=CANARY, payload=SECRET)
        gate = gate.model_copy(update={"action": Action(tool="pay", arguments=SECRET)})
        form = Interrupt.question(SECRET, schema=SCHEMA)
        job = completion("c3", metadata=SECRET)
        told = await self.broker.suspend(
            "airline", gate, form, job, session="s_1", key="waiting", input=SECRET
        )
        self.waiting = told.run_id or ""
        self.gate, self.form, self.job = told.interrupt_ids
        started = await self.broker.start("airline", SECRET, session="s_2", key="leased")
        (self.run,) = await self.broker.queue("agents").lease(("airline",))
        assert self.run.id == started.run_id


async def refused(setting: Setting, call: Awaitable[object]) -> tuple[str, str, str]:
    """Code, field and text of a refusal, told or raised. No key changed and nothing secret is shown."""
    before = setting.world.snapshot()
    try:
        told: Any = await call
        shown = f"{told!r} {told.to_json()}"
    except BrokerError as error:
        told = error.outcome if isinstance(error, Refused) else error
        shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert changed(before, setting.world.snapshot()) == []
    assert CANARY not in shown
    assert not getattr(told, "ok", False)
    if told.code == "invalid":
        assert told.problem
        assert told.allowed
    return told.code, getattr(told, "field", ""), f"{told} {getattr(told, 'problem', '')}"


def suspended(setting: Setting, *interrupts: Any, **rest: Any) -> Awaitable[object]:
    return setting.run.suspend(*interrupts, **rest)  # type: ignore[no-any-return]
