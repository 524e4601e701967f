"""ADK-Rust's wire, exactly: the checkpoint of a CodeAct agent, its confirmation request, a completion in a message.

Optional fields that are null read as absent, as serde reads them, and are written as absent (A3).
"""

import json
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, InstanceOf, StrictBytes, StrictInt
from pydantic.alias_generators import to_camel

from ...core.dispositions import Disposition
from ...core.fields import Id, Json, JsonArray, Trust
from ...core.limits import JSON, LIMITS
from ...core.models import Action
from ...core.shape import Model, slots
from ...errors import InvalidInput
from .._files import write_whole

U32: Final = 2**32 - 1
U64: Final = 2**64 - 1
BYTE: Final = 255


class PendingCall(Model):
    """The one tool call a script waits for. Its id is a number on the wire, and its decimal text everywhere else."""

    SHOWN: ClassVar[tuple[str, ...]] = ("call_id", "tool")

    call_id: Annotated[StrictInt, Field(ge=0, le=U64)]
    tool: Id
    args: Json

    @property
    def entry(self) -> str:
        """The id that decisions and completions name it by (A11)."""
        return str(self.call_id)

    @property
    def action(self) -> Action:
        """The tool and its arguments, whose digest binds a decision."""
        return Action(tool=self.tool, arguments=self.args)


class Checkpoint(Model):
    """A CodeAct agent frozen at a tool call: its interpreter's bytes, the call, and how to go on from there.

    `tool_roster` names the tools it was frozen with, in order. `snapshot` is bytes here and a list of integers on the
    wire. Fields of another version are kept.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("iteration", "call", "disposition")
    MOST: ClassVar[int] = LIMITS.state_bytes

    iteration: Annotated[StrictInt, Field(ge=0, le=U32)]
    transcript: JsonArray
    snapshot: StrictBytes
    call: PendingCall
    disposition: InstanceOf[Disposition]
    tool_roster: tuple[Id, ...]

    def to_json(self) -> JSON:
        """The file's JSON: what ADK-Rust writes under `codeact_pending`."""
        return {**super().to_json(), "snapshot": list(self.snapshot)}

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        if trust is Trust.THEIRS and isinstance(data, dict) and "snapshot" in data:
            data = {**data, "snapshot": _bytes(data["snapshot"])}
        return super()._read(data, trust)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The checkpoint in a file. What does not parse raises `InvalidInput` and is left as it is (A4)."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            data = None
        return cls.from_json(data)

    def dump(self, path: str | Path) -> None:
        """Writes the file whole or not at all. Safe to repeat."""
        text = json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":"))
        write_whole(Path(path), text.encode())


def _bytes(given: JSON) -> bytes:
    if isinstance(given, list) and all(type(one) is int and 0 <= one <= BYTE for one in given):
        return bytes(given)
    raise InvalidInput("snapshot", "is no list of bytes", f"a list of integers from 0 to {BYTE}")


def without_nulls(model: type[Model], data: dict[str, JSON]) -> dict[str, JSON]:
    """The same without optional fields that are null: to serde they are absent."""
    optional = {slot.wire for slot in slots(model) if not slot.required}
    return {name: value for name, value in data.items() if value is not None or name not in optional}


class ConfirmationRequest(Model):
    """What whoever decides is shown: `{"toolName", "functionCallId"?, "args"}`."""

    SHOWN: ClassVar[tuple[str, ...]] = ("tool_name", "function_call_id")

    tool_name: Id
    function_call_id: Id | None = None
    args: Json

    @classmethod
    def _wire_name(cls, name: str) -> str:
        return to_camel(name)

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        return super()._read(without_nulls(cls, data) if isinstance(data, dict) else data, trust)


class FunctionResponse(Model):
    """The result of one long-running call; `id` is the call it is about, where the sender knew it.

    Part of a message: `{"functionResponse": {"name", "response"}, "id"?}`.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("name", "id")
    PART: ClassVar[str] = "functionResponse"

    name: Id
    response: Json
    id: Id | None = None

    def to_wire(self) -> dict[str, JSON]:
        """The part of a message that carries it."""
        wire = super().to_wire()
        outside = {"id": wire.pop("id")} if "id" in wire else {}
        return {self.PART: wire, **outside}

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        inner = data.get(cls.PART) if isinstance(data, dict) else None
        if not isinstance(inner, dict):
            raise InvalidInput(cls.PART, "is missing or no object", "an object with name and response")
        outside = {"id": data["id"]} if data.get("id") is not None else {}
        return super()._read({**inner, **outside}, trust)

    @classmethod
    def all_of(cls, message: JSON) -> tuple[Self, ...]:
        """The results in a message `{"role", "parts": [...]}`; its other parts are passed over."""
        parts = message.get("parts") if isinstance(message, dict) else None
        if not isinstance(parts, list):
            raise InvalidInput("message.parts", "is missing or no list", "a list of parts")
        found = []
        for place, part in enumerate(parts):
            if isinstance(part, dict) and cls.PART in part:
                try:
                    found.append(cls.from_json(part))
                except InvalidInput as wrong:
                    fault = wrong
                else:
                    continue
                raise fault.inside(f"message.parts[{place}]")
        return tuple(found)
