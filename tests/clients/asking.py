"""Questions and parties that the tests of the clients share."""

from typing import Any

from broker import Action, Interrupt, Principal

ADA, BEN = Principal.local("ada"), Principal.local("ben")


def refund(amount: int = 40, call: str = "call_1", **more: Any) -> Interrupt:
    """May this much be paid back?"""
    return Interrupt.approval(Action(tool="refund", arguments={"amount": amount}), call, **more)


def render(call: str = "job_1", **more: Any) -> Interrupt:
    """A job that runs elsewhere."""
    return Interrupt.completion(
        Action(tool="render", arguments={"prompt": "a cat"}), call, "handle-1", **more
    )


def colour(**more: Any) -> Interrupt:
    """A question whose answer has a schema."""
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
    return Interrupt.question({"ask": "Which colour?"}, schema, **more)
