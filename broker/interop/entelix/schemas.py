"""JSON Schemas of entelix's wire, as its readers read it: what a schema refuses, a reader refuses."""

from typing import Any, Final

from ...core.limits import JSON
from ...core.schema import DIALECT, schema_for

_ID: Final[dict[str, JSON]] = {"type": "string", "minLength": 1}
_DECISION: Final[dict[str, JSON]] = {
    "oneOf": [
        {"enum": ["approve", "await_external", {"approve": None}, {"await_external": None}]},
        {
            "type": "object",
            "required": ["reject"],
            "additionalProperties": False,
            "properties": {
                "reject": {
                    "type": "object",
                    "required": ["reason"],
                    "properties": {"reason": {"type": "string"}},
                }
            },
        },
    ]
}
_FIELDS: Final[dict[str, dict[str, dict[str, JSON]]]] = {
    "approve_tool": {"tool_use_id": _ID, "decision": {"$ref": "#/$defs/Decision"}},
    "update": {"state": {}},
    "goto": {"node": _ID},
}


def _when(command: str, fields: dict[str, dict[str, JSON]]) -> dict[str, JSON]:
    found = {"properties": {"command": {"const": command}}, "required": ["command"]}
    return {"if": found, "then": {"properties": fields, "required": list(fields)}}


_DECISIONS: Final[dict[str, JSON]] = {
    "decisions": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Decision"}}
}
_COMMAND: Final[dict[str, JSON]] = {
    "type": "object",
    "anyOf": [{"required": ["command"]}, {"required": ["decisions"]}],
    "properties": {"command": {"type": "string", "minLength": 1}},
    "allOf": [
        {
            "if": {"properties": {"command": {"const": "resume"}}},
            "then": {"properties": _DECISIONS},
        },
        *(_when(command, fields) for command, fields in _FIELDS.items()),
    ],
}
_ENVELOPE: Final[dict[str, JSON]] = {
    "type": "object",
    "required": ["schema_version", "body"],
    "properties": {"schema_version": {"const": 1}, "body": {}},
}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by name: `InterruptionKind`, `Interrupted`, `Decision`, `Command`, `Envelope`."""
    kind = schema_for("InterruptionKind")
    interrupted = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"$ref": "#/$defs/InterruptionKind"}, "payload": {}},
        "$defs": {"InterruptionKind": {name: part for name, part in kind.items() if name != "$schema"}},
    }
    bodies = {
        "Interrupted": interrupted,
        "Decision": _DECISION,
        "Command": _COMMAND | {"$defs": {"Decision": _DECISION}},
        "Envelope": _ENVELOPE,
    }
    own = {name: {"$schema": DIALECT, "title": name} | body for name, body in bodies.items()}
    return {"InterruptionKind": kind} | own
