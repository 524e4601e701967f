"""What one lifecycle carries: about 4 KB of agent state, one tool call that waits for approval, one decision."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final

TOOL: Final = "issue_refund"
BY: Final = "alice"

_WORDS: Final = [
    "account", "agent", "amount", "approve", "cancel", "carrier", "charge", "claim", "clause", "contract", "credit",
    "currency", "customer", "delivery", "invoice", "itinerary", "ledger", "parcel", "passenger", "policy", "receipt",
    "refund", "region", "seat", "segment", "ticket", "transfer", "voucher",
]  # fmt: skip
_SEED: Final = 11
_PROMPT: Final = 700
_MESSAGES: Final = 10
_MESSAGE: Final = 255


def _prose(chance: random.Random, size: int) -> str:
    words: list[str] = []
    left = size
    while left > 0:
        word = chance.choice(_WORDS)
        if chance.random() < 0.2:  # noqa: PLR2004 - one word in five carries a number, as ids and amounts do
            word += str(chance.randrange(1000))
        words.append(word)
        left -= len(word) + 1
    return " ".join(words)[:size]


@cache
def _conversation() -> tuple[str, tuple[dict[str, Any], ...]]:
    chance = random.Random(_SEED)  # noqa: S311 - the same text every time
    prompt = _prose(chance, _PROMPT)
    messages = tuple(
        {"role": ("user", "assistant")[n % 2], "id": f"msg_{n:04d}", "content": _prose(chance, _MESSAGE)}
        for n in range(_MESSAGES)
    )
    return prompt, messages


def prompt() -> str:
    """The system prompt, 700 characters."""
    return _conversation()[0]


def messages() -> list[dict[str, Any]]:
    """Ten messages of 255 characters, user and assistant in turn."""
    return list(_conversation()[1])


MODEL: Final = "gpt-4.1-mini-2025-04-14"


def call_id(number: int) -> str:
    """The id of the tool call that lifecycle `number` waits for."""
    return f"call_{number:08d}"


def arguments(number: int) -> dict[str, Any]:
    """What that call would be made with."""
    return {"order_id": f"ord-{number:08d}", "amount": 129.5, "currency": "EUR"}


def snapshot(number: int) -> dict[str, Any]:
    """The whole state as a hand-written program would keep it: one JSON object of about 4,000 bytes."""
    return {
        "run": f"run-{number:08d}",
        "system_prompt": prompt(),
        "model": MODEL,
        "messages": messages(),
        "pending": {"id": call_id(number), "name": TOOL, "arguments": arguments(number)},
    }


def decision(number: int) -> dict[str, Any]:
    """What the approver says, about 50 bytes as JSON."""
    return {"run": number, "action": "approve", "by": BY, "note": None}


dumps: Final[Callable[[Any], str]] = json.JSONEncoder(separators=(",", ":")).encode
"""Compact JSON, as short as the standard library makes it."""
