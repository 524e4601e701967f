"""How a paused thread is to go on: entelix's four commands in a JSON form of the broker's, and the versioned envelope.

In entelix a command is the argument of a call inside one process. Here it travels:

    {"command": "resume"}                                  go on where it stopped
    {"decisions": {"tu_81": "approve"}}                    the same, with decisions about tool calls
    {"command": "approve_tool", "tool_use_id": "tu_81", "decision": "approve"}
    {"command": "update", "state": {"ok": true}}           go on with another state
    {"command": "goto", "node": "refund"}                  go on at another node

Open: match on the classes and keep a `case _`. A command of another version is kept whole and does nothing.
"""

from collections.abc import Callable
from typing import ClassVar, Final, Self

from pydantic import Field, InstanceOf

from ...core.answers import Answer
from ...core.fields import Id, Json, Trust
from ...core.limits import JSON, check_id, check_json
from ...core.shape import Tagged, slots
from ...errors import InvalidInput
from .decisions import decision_json, parse_decision

SCHEMA_VERSION: Final = 1
"""The version of the envelope that entelix stores records in."""


def _parse_decisions(data: JSON) -> dict[str, Answer]:
    if not isinstance(data, dict):
        raise InvalidInput("decisions", "is no object", "decisions by tool_use_id")
    return {
        check_id("decisions", id): parse_decision(one, field=f"decisions.{id}") for id, one in data.items()
    }


class Command(Tagged):
    """How a paused thread is to go on."""

    TAG_KEY: ClassVar[str] = "command"

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        known = {slot.wire for slot in slots(cls)}
        values = {name: cls._parse(name, value) for name, value in data.items() if name in known}
        unknown = {name: check_json(name, value) for name, value in data.items() if name not in known}
        return cls._make(values, unknown, trust)

    @classmethod
    def _parse(cls, name: str, value: JSON) -> JSON:
        parse = _PARSERS.get(name)
        return value if parse is None else parse(value)


class Resume(Command):
    """Go on where it stopped, with these decisions about tool calls; several may travel together (E9)."""

    TAG: ClassVar[str] = "resume"
    SHOWN: ClassVar[tuple[str, ...]] = ("decisions",)

    decisions: dict[str, InstanceOf[Answer]] = Field(default_factory=dict)

    def to_wire(self) -> dict[str, JSON]:
        """`{"command": "resume"}`, with `decisions` where there are some."""
        told = {id: decision_json(one) for id, one in self.decisions.items()}
        return super().to_wire() | ({"decisions": told} if told else {})


class ApproveTool(Command):
    """Go on with this decision about one tool call."""

    TAG: ClassVar[str] = "approve_tool"
    SHOWN: ClassVar[tuple[str, ...]] = ("tool_use_id", "decision")

    tool_use_id: Id
    decision: InstanceOf[Answer]

    def to_wire(self) -> dict[str, JSON]:
        """`{"command": "approve_tool", "tool_use_id": ..., "decision": ...}`."""
        return super().to_wire() | {"decision": decision_json(self.decision)}


class Update(Command):
    """Go on with this state in place of the saved one."""

    TAG: ClassVar[str] = "update"

    state: Json


class GoTo(Command):
    """Go on at this node in place of the saved one."""

    TAG: ClassVar[str] = "goto"
    SHOWN: ClassVar[tuple[str, ...]] = ("node",)

    node: Id


class UnknownCommand(Command):
    """A command of another version, kept whole in `raw`; it is never carried out as one of ours."""

    raw: dict[str, JSON]

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


Command.VARIANTS = {kind.TAG: kind for kind in (Resume, ApproveTool, Update, GoTo)}
Command.OTHER = UnknownCommand
_PARSERS: Final[dict[str, Callable[[JSON], object]]] = {
    "decision": parse_decision,
    "decisions": _parse_decisions,
}


def parse_command(data: JSON) -> Command:
    """The command behind its JSON, from anybody. Raises `InvalidInput` where a field is missing or wrong."""
    if isinstance(data, dict) and "decisions" in data and Command.TAG_KEY not in data:
        data = data | {Command.TAG_KEY: Resume.TAG}
    return Command.from_json(data)


def envelope(body: JSON) -> dict[str, JSON]:
    """A record as entelix stores it."""
    return {"schema_version": SCHEMA_VERSION, "body": body}


def open_envelope(data: JSON) -> JSON:
    """What is in an envelope. Raises `InvalidInput` for one of another version, older or newer (E19)."""
    if not isinstance(data, dict):
        raise InvalidInput("envelope", "is no object", "schema_version and body")
    version = data.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise InvalidInput("schema_version", "is not one this release reads", str(SCHEMA_VERSION))
    if "body" not in data:
        raise InvalidInput("body", "is missing", "any JSON")
    return data["body"]
