"""MCP: tools that ask before they answer, for runs that pause in the broker; and the broker itself behind MCP.

`Tools` calls a server's tools and parks what they ask, on both generations of the protocol. `SingleUse` has a server of
one's own take each request state once. `approvals` is a server whose tools list, show and answer interrupts.
"""

from .._contract import Package, require

require("mcp", "The adapter for MCP", Package("mcp", (2, 3), 3))

from .approvals import approvals, may_answer, person_of  # noqa: E402 - a missing package is named first
from .once import SingleUse  # noqa: E402
from .tools import KEY, TOLD, Tools  # noqa: E402

__all__ = ["KEY", "TOLD", "SingleUse", "Tools", "approvals", "may_answer", "person_of"]
