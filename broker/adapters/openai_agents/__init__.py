"""The OpenAI Agents SDK: an agent whose runs park when a tool waits for somebody, and that any worker goes on with.

    support = resumable(Agent("support", tools=[brokered(refund)]))
    worker.add("support", support)

The state of a paused run (`RunState`) rides in the pause. It needs the extra `openai_agents`.
"""

from .._contract import Package, require

VERSIONS = require(
    "openai_agents", "The adapter of the OpenAI Agents SDK", Package("openai-agents", (0, 24), 1)
)

from .agent import ResumableAgent, resumable  # noqa: E402 - only once the package is known to be there
from .tools import ALWAYS, brokered, effect_key  # noqa: E402

__all__ = ["ALWAYS", "ResumableAgent", "brokered", "effect_key", "resumable"]
