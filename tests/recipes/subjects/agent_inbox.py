"""Graphs whose questions are shown and answered in Agent Inbox's schema, by the recipe of docs/howto/agent-inbox.md."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from langgraph.types import interrupt

from broker.adapters.langgraph import effect_key, resumable
from tests.adapters.cases import Alone, Handler
from tests.adapters.child import AGENT
from tests.adapters.subjects import langgraph
from tests.adapters.world import World
from tests.recipes.kitchen import recipe

PACKAGES = ("langgraph", "langchain")
CANNOT: Mapping[str, str] = {}
ALONE: Mapping[str, Alone] = {}
PAGE: Final = recipe("agent-inbox", "agent_inbox")

MAIL: Final[dict[str, Any]] = {
    "action_request": {"action": "mail", "args": {"to": "eve", "copies": 3, "urgent": True}},
    "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
    "description": "May it write to eve?",
}
"""What a graph asks by itself in the schema."""
ONLY_RESPOND: Final[dict[str, Any]] = {
    **MAIL,
    "config": {"allow_accept": False, "allow_edit": False, "allow_respond": True, "allow_ignore": False},
}
ASKS: Final[dict[str, Any]] = {"mail": MAIL, "listed": [MAIL], "only_respond": MAIL | ONLY_RESPOND}


def mails(asked: Any, world: World, _: Any) -> dict[str, Any]:
    """A node that asks, and then does what was responded."""
    (response,) = interrupt(asked)
    if response["type"] in ("accept", "edit"):
        world.effect("mail", response["args"]["args"], effect_key())
    return {"results": [response]}


def handler(scenario: str, world: World) -> Handler:
    """The worker's handler: a graph that asks in the schema, or an agent of LangChain's middleware."""
    if scenario not in ASKS:
        found: Handler = langgraph.handler(scenario, world)
        return found
    graph = langgraph.simple(partial(mails, ASKS[scenario], world), langgraph.saver(world))
    return langgraph.Given(resumable(graph, AGENT, ask=PAGE.held, result=langgraph.said), messages=False)


def alone(case: str, phase: str, world: World) -> str:
    """The recipes have no column of their own."""
    raise NotImplementedError(f"{case}, {phase}, {world}")
