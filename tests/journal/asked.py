"""Tool calls as models write them."""

import json
from typing import Any


def call(call_id: str | None, tool: str, **arguments: Any) -> dict[str, Any]:
    """One call in the chat-completions shape."""
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
