"""Pydantic AI: an agent whose runs park when a tool is deferred, and that any worker goes on with.

    support = resumable(Agent(model, tools=[Tool(refund, requires_approval=True)]), name="support")
    worker.add("support", support)

The conversation, with the requests it waits for, rides in the pause. It needs the extra `pydantic_ai`.
"""

from .._contract import Package, require

VERSIONS = require("pydantic_ai", "The adapter of Pydantic AI", Package("pydantic-ai-slim", (2, 62), 3))

from .agent import ResumableAgent, resumable  # noqa: E402 - only once the package is known to be there
from .events import resolve_external_event  # noqa: E402
from .results import effect_key  # noqa: E402
from .segment import InlineWait  # noqa: E402

__all__ = ["InlineWait", "ResumableAgent", "effect_key", "resolve_external_event", "resumable"]
