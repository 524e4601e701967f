"""Tool calls as models ask for them, in the shapes of the common APIs, and the messages their results become."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import InvalidInput
from .digest import content_digest
from .entries import Failure, Result
from .limits import JSON, check_id, check_json

LONGEST: Final = 240
"""Longest call id that is an entry's name as it is: there is room for what is put behind it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for. `id` is None where the model gave none; `fault` says why it cannot be made."""

    id: str | None
    name: str
    arguments: dict[str, JSON] = field(repr=False)
    fault: Failure | None = None

    @classmethod
    def parse(cls, asked: Any) -> "ToolCall":
        """The call behind `{"id", "function": {"name", "arguments"}}` or `{"id", "name", "arguments"|"args"|"input"}`.

        Maps or objects, arguments as an object or as its JSON text. What a model got wrong (arguments that are none, a
        name that cannot be one) is the call's fault, and the model is told. Raises `InvalidInput` for what is no call.
        """
        inner = _get(asked, "function")
        body = asked if inner is None else inner
        name = _get(body, "name")
        if not isinstance(name, str):
            raise InvalidInput(
                "tool_calls",
                "holds what names no tool",
                "chat-completions tool calls, or id, name, arguments",
            )
        call_id = _get(asked, "id") or _get(asked, "tool_call_id")
        found: Any = next(
            (value for key in ("arguments", "args", "input") if (value := _get(body, key)) is not None), {}
        )
        arguments, fault = _arguments(found)
        return cls.of(str(call_id) if call_id else None, name, arguments, fault)

    @classmethod
    def of(
        cls, call_id: str | None, name: str, arguments: dict[str, JSON], fault: Failure | None = None
    ) -> "ToolCall":
        """A call by its parts; what is wrong with them is its fault."""
        try:
            check_id("name", name)
            arguments = check_json("arguments", arguments)
        except InvalidInput as wrong:
            fault = fault or Failure(kind="InvalidCall", text=f"{wrong.field} {wrong.problem}")
        return cls(call_id, name, arguments, fault)

    @property
    def entry(self) -> str | None:
        """Its name in the journal: its id, or what stands for one that no key can end in; None without an id."""
        if self.id is None:
            return None
        try:
            if len(self.id) <= LONGEST:
                return check_id("id", self.id)
        except InvalidInput:
            pass
        return f"call_{content_digest(self.id.encode(errors='surrogatepass'))[:32]}"

    def message(self, result: Result) -> dict[str, JSON]:
        """The tool message that answers this call."""
        return {"role": "tool", "tool_call_id": self.id, "name": self.name, "content": result.message()}


def _get(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, Mapping) else getattr(holder, key, None)


def _arguments(found: Any) -> tuple[dict[str, JSON], Failure | None]:
    if isinstance(found, str):
        try:
            found = json.loads(found) if found.strip() else {}
        except (ValueError, RecursionError):
            return {}, Failure(kind="InvalidCall", text="its arguments are no JSON")
    if not isinstance(found, Mapping):
        return {}, Failure(kind="InvalidCall", text="its arguments are no object")
    return dict(found), None
