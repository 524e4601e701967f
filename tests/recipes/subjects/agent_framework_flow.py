"""A workflow of Microsoft Agent Framework, on the second recipe of docs/howto/agent-framework.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, response_handler
from agent_framework import handler as takes

from broker.adapters import effect_key
from tests.adapters.cases import Alone, Handler
from tests.adapters.world import World
from tests.recipes.kitchen import recipe

PACKAGES = ("agent-framework-core",)
CANNOT: Mapping[str, str] = {}
ALONE: Mapping[str, Alone] = {}
PAGE: Final = recipe("agent-framework", "resumable_workflow")


@dataclass
class Ask:
    """What is asked."""

    amount: int


@dataclass
class Leave:
    """What is responded."""

    yes: bool
    why: str = ""


TYPES: Final = {
    "pay": (f"{__name__}:Ask", f"{__name__}:Leave"),
    "unlisted": (f"{__name__}:Leave",),
}
"""What the checkpoints of a scenario may hold."""


class Cashier(Executor):
    """Asks about an amount, and then about one more."""

    def __init__(self, world: World) -> None:
        super().__init__(id="cashier")
        self.world = world

    @takes
    async def begin(self, amount: int, ctx: WorkflowContext[int, str]) -> None:
        self.world.effect("begin", amount, "")
        await ctx.request_info(Ask(amount), Leave, request_id=f"pay-{amount}")

    @response_handler
    async def told(self, asked: Ask, leave: Leave, ctx: WorkflowContext[int, str]) -> None:
        if leave.yes:
            self.world.effect("pay", asked.amount, effect_key(f"pay-{asked.amount}"))
        await ctx.yield_output(f"{asked.amount}: {'paid' if leave.yes else leave.why}")
        if asked.amount == 10:
            await ctx.request_info(Ask(11), Leave, request_id="pay-11")


def made(world: World, storage: Any) -> Any:
    cashier = Cashier(world)
    flow = WorkflowBuilder(
        name="payer", start_executor=cashier, output_from=[cashier], checkpoint_storage=storage
    )
    return flow.build()


def handler(scenario: str, world: World) -> Handler:
    """What a worker is given for the workflow."""
    found: Handler = PAGE.ResumableWorkflow(partial(made, world), *TYPES[scenario])
    return found


def alone(case: str, phase: str, world: World) -> str:
    """The recipes have no column of their own."""
    raise NotImplementedError(f"{case}, {phase}, {world}")
