"""What an approver says, in each form that ADK-Rust's hosts use, and which calls must be asked about at all.

None of them approves by accident: a word that is not known is refused, or counts as a no (A26).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

from pydantic import StrictBool

from ...core.answers import Answer, Approve, Cancel, Complete, Fail, Reject
from ...core.digest import action_digest, canonical_json
from ...core.fields import Id, JsonArray, Text, Trust
from ...core.limits import JSON
from ...core.models import Action
from ...core.shape import Model, Tagged
from ...core.tools import Tool, registry
from ...errors import InvalidInput
from .shapes import without_nulls

UNIT: Final = "\x1f"


def fingerprint(tool: str, arguments: JSON) -> str:
    """What binds a decision to a call: the tool's name, U+001F, the arguments as JSON with sorted keys (A12)."""
    return f"{tool}{UNIT}{canonical_json(arguments).decode()}"


def fits(text: str, action: Action) -> bool:
    """Whether a fingerprint is of this very action, however its writer spelled numbers and ordered keys."""
    tool, _, arguments = text.partition(UNIT)
    try:
        return action_digest(tool, json.loads(arguments)) == action.digest
    except (ValueError, RecursionError):
        return False


class Word(StrEnum):
    """The two decisions there are."""

    APPROVE = "approve"
    DENY = "deny"


class Decision(Model):
    """A decision about one call, by its id; a `fingerprint` makes it void for any other arguments (A11, A12)."""

    SHOWN: ClassVar[tuple[str, ...]] = ("call_id", "decision")

    call_id: Id
    decision: Word
    fingerprint: Text | None = None
    reason: Text | None = None

    @property
    def answer(self) -> Answer:
        """The same as an answer."""
        return Approve() if self.decision is Word.APPROVE else Reject(reason=self.reason or "denied")

    @classmethod
    def all_of(cls, decisions: Mapping[str, JSON]) -> tuple[Self, ...]:
        """The decisions of a map from call id to `approve` or `deny`."""
        if not isinstance(decisions, Mapping):
            raise InvalidInput("decisions", "is no object", "an object from call id to approve or deny")
        found = []
        for call_id, word in decisions.items():
            try:
                found.append(cls.from_json({"call_id": call_id, "decision": word}))
            except InvalidInput as wrong:
                fault = wrong
            else:
                continue
            raise InvalidInput(f"decisions.{call_id}"[:256], fault.problem, fault.allowed)
        return tuple(found)


class ManagedAnswer(Tagged):
    """An event by which the managed runtime answers a call. Open: keep a `case _`."""

    TAG_KEY: ClassVar[str] = "type"

    @property
    def call_id(self) -> str:
        """The call it answers; empty where this release does not know."""
        return ""

    @property
    def answer(self) -> Answer | None:
        """The same as an answer; None where this release does not know one."""
        return None

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        return super()._read_fields(without_nulls(cls, data), trust)


class Permission(StrEnum):
    """The two results of a managed confirmation."""

    ALLOW = "allow"
    DENY = "deny"


class ToolConfirmation(ManagedAnswer):
    """`allow` or `deny` about a gated call."""

    TAG: ClassVar[str] = "user.tool_confirmation"
    SHOWN: ClassVar[tuple[str, ...]] = ("tool_use_id", "result")

    tool_use_id: Id
    result: Permission
    deny_message: Text | None = None

    @property
    def call_id(self) -> str:
        """The call it answers."""
        return self.tool_use_id

    @property
    def answer(self) -> Answer:
        """The same as an answer."""
        return Approve() if self.result is Permission.ALLOW else Reject(reason=self.deny_message or "denied")


class CustomToolResult(ManagedAnswer):
    """The result of a call that the host ran: a list of content blocks."""

    TAG: ClassVar[str] = "user.custom_tool_result"
    SHOWN: ClassVar[tuple[str, ...]] = ("custom_tool_use_id", "is_error")

    custom_tool_use_id: Id
    content: JsonArray
    is_error: StrictBool = False

    @property
    def call_id(self) -> str:
        """The call it answers."""
        return self.custom_tool_use_id

    @property
    def answer(self) -> Answer:
        """The same as an answer."""
        if not self.is_error:
            return Complete(value=self.content)
        return Fail(error=canonical_json(self.content).decode())


class UnknownManaged(ManagedAnswer):
    """An event of another version, kept whole in `raw`; it answers nothing."""

    SHOWN: ClassVar[tuple[str, ...]] = ("type",)

    raw: dict[str, JSON]

    @property
    def type(self) -> str:
        """The word on the wire."""
        return str(self.raw.get("type", ""))

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


ManagedAnswer.VARIANTS = {kind.TAG: kind for kind in (ToolConfirmation, CustomToolResult)}
ManagedAnswer.OTHER = UnknownManaged


def prompt_answer(outcome: JSON) -> Answer:
    """What the outcome of an editor's permission prompt (ACP) answers. Only `allow-once` approves (A26).

    `{"outcome": "selected", "optionId": ...}` or `{"outcome": "cancelled"}`. A prompt that was cancelled, or whose
    outcome is not known, is abandoned; an option other than the two is a no.
    """
    said: Mapping[str, Any] = outcome if isinstance(outcome, dict) else {}
    match said.get("outcome"), said.get("optionId"):
        case "selected", "allow-once":
            return Approve()
        case "selected", "reject-once":
            return Reject(reason="denied")
        case "selected", _:
            return Reject(reason="an option that is not known")
        case "cancelled", _:
            return Cancel(reason="the prompt was cancelled")
        case _:
            return Cancel(reason="an outcome that is not known")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which tools are asked about: none, all, or some by name. One that is not known asks about all (A22)."""

    raw: JSON = field(repr=False)
    names: frozenset[str] | None
    """The tools that are asked about; None for all."""

    @classmethod
    def parse(cls, data: JSON) -> "Policy":
        """The policy behind `"never"`, `"always"` or `{"per_tool": [...]}`."""
        if data == "never":
            return cls(data, frozenset())
        named = data.get("per_tool") if isinstance(data, dict) and len(data) == 1 else None
        if isinstance(named, list) and all(isinstance(one, str) for one in named):
            return cls(data, frozenset(named))
        return cls(data, None)

    def asks(self, tool: str) -> bool:
        """Whether calls of a tool need somebody's yes."""
        return self.names is None or tool in self.names

    def apply(self, tools: Mapping[str, Any] | Sequence[Any]) -> dict[str, Tool]:
        """Tools by name, gated where this policy says so. One that is gated by itself stays so."""
        return {
            name: replace(one, gated=one.gated or self.asks(name)) for name, one in registry(tools).items()
        }
