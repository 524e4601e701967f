"""Interrupt files as swink writes them."""

from typing import Any, Final

MODEL: Final[dict[str, Any]] = {
    "provider": "acme",
    "model_id": "m-2",
    "thinking_level": "off",
    "thinking_budgets": None,
}

FILE: Final = b"""{
  "interrupted_at": 1767225600,
  "pending_tool_calls": [
    {
      "tool_call_id": "tc_7",
      "tool_name": "shell",
      "arguments": {
        "cmd": "make deploy"
      }
    },
    {
      "tool_call_id": "tc_8",
      "tool_name": "now",
      "arguments": null
    }
  ],
  "context_snapshot": [
    {
      "role": "user",
      "content": [
        {
          "type": "text",
          "text": "ship it \xe2\x80\x94 now"
        }
      ],
      "timestamp": 1767225590
    }
  ],
  "system_prompt": "Be careful.",
  "model": {
    "provider": "acme",
    "model_id": "m-2",
    "thinking_level": "off",
    "thinking_budgets": null
  }
}"""


def snapshot(*calls: str, **more: Any) -> dict[str, Any]:
    """The same as JSON, with calls of these ids pending."""
    pending = [{"tool_call_id": one, "tool_name": "shell", "arguments": {"cmd": one}} for one in calls]
    return {
        "interrupted_at": 1767225600,
        "pending_tool_calls": pending,
        "context_snapshot": [],
        "system_prompt": "Be careful.",
        "model": MODEL,
    } | more
