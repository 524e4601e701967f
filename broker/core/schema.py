"""JSON Schemas of every wire type, drawn from the same slots the readers use: what a schema refuses, a reader refuses.

Optional is absent, never null. Objects are open, since fields of another version are kept (P10); so are words and
tags that another version may add to. Bytes are base64 text in JSON (and `bin` in MessagePack).
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, get_args, get_origin

from pydantic import AwareDatetime

from . import answers, dispositions, kinds, models, outcomes, records
from .fields import OpenWord
from .limits import INT_MAX, INT_MIN, JSON
from .shape import Model, Slot, Tagged, bare_type, slots

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

UNIONS: Final[tuple[type[Tagged], ...]] = (kinds.InterruptionKind, answers.Answer, dispositions.Disposition)
OBJECTS: Final[tuple[type[Model], ...]] = (
    answers.Principal,
    answers.Verdict,
    models.Action,
    models.PendingToolCall,
    models.InterruptState,
    models.Interrupt,
    models.InputRecord,
    models.ResultRecord,
    dispositions.CallRecord,
    dispositions.SubagentOutcome,
    records.Resolution,
    records.InterruptRecord,
    records.RunRecord,
    records.HistoryEntry,
    outcomes.Winner,
    *get_args(outcomes.Outcome),
)
DURABILITY: Final[dict[str, JSON]] = {
    "type": "string", "pattern": r"^(memory|fsynced|replicated\([1-9][0-9]?\))$",
}  # fmt: skip
_TEXT: Final[dict[str, JSON]] = {"type": "string"}
_SCALARS: Final[dict[Any, dict[str, JSON]]] = {
    str: _TEXT,
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": INT_MIN, "maximum": INT_MAX},
    bytes: {"type": "string", "contentEncoding": "base64"},
    AwareDatetime: {"type": "integer", "description": "milliseconds since 1970, UTC"},
    timedelta: {"type": "integer", "description": "milliseconds"},
}


def schema_for(name: str) -> dict[str, JSON]:
    """The JSON Schema of one wire type, by its class name, with what it refers to. Raises `KeyError`."""
    return complete(name, _definitions())


def schemas() -> dict[str, dict[str, JSON]]:
    """Every wire type's JSON Schema, by class name."""
    every = _definitions()
    return {name: complete(name, every) for name in every}


def complete(name: str, every: dict[str, dict[str, JSON]]) -> dict[str, JSON]:
    """One of `every` as a JSON Schema of its own, with what it refers to. Raises `KeyError`."""
    body = every[name]
    return {
        "$schema": DIALECT,
        "title": name,
        **body,
        "$defs": {key: every[key] for key in _needed(body, every)},
    }


def _definitions() -> dict[str, dict[str, JSON]]:
    return {
        "Durability": DURABILITY,
        **described(UNIONS, OBJECTS),
    }


def described(unions: Iterable[type[Tagged]], objects: Iterable[type[Model]]) -> dict[str, dict[str, JSON]]:
    """What the schemas of these types say, by class name, for `complete`."""
    return {
        **{union.__name__: _union(union) for union in unions},
        **{model.__name__: _object(model) for model in objects},
    }


def _union(union: type[Tagged]) -> dict[str, JSON]:
    """A tag that is text, and for each known tag its fields; other tags are kept as they are."""
    rules = [
        {
            "if": {"properties": {union.TAG_KEY: {"const": tag}}},
            "then": _RESOLVED if variant is dispositions.Resolved else _object(variant),
        }
        for tag, variant in union.VARIANTS.items()
    ]
    return {
        "type": "object",
        "required": [union.TAG_KEY],
        "properties": {union.TAG_KEY: {"type": "string", "minLength": 1}},
        "allOf": rules,
    }


def _object(model: type[Model]) -> dict[str, JSON]:
    fields = slots(model)
    out: dict[str, JSON] = {"type": "object", "properties": {slot.wire: _field(slot) for slot in fields}}
    if code := getattr(model, "code", None):
        out["properties"] = {"code": {"const": code}, **out["properties"]}
    if required := [slot.wire for slot in fields if slot.required]:
        out["required"] = required
    if model.RULES:
        out["allOf"] = [model.RULES]
    return out


def _field(slot: Slot) -> dict[str, JSON]:
    if slot.type is Any:
        return {} if slot.nullable else {"not": {"type": "null"}}
    schema = _type(slot.type)
    return {"anyOf": [schema, {"type": "null"}]} if slot.nullable else schema


def _type(bare: JSON) -> dict[str, JSON]:
    if bare in _SCALARS:
        return _SCALARS[bare]
    origin: object = get_origin(bare)
    if origin is tuple:
        return {"type": "array", "items": _type(bare_type(get_args(bare)[0]))}
    if origin in (dict, list):
        return {"type": "object" if origin is dict else "array"}
    if issubclass(bare, OpenWord):
        return {"type": "string", "examples": list(bare)}
    if issubclass(bare, StrEnum):
        return {"enum": [str(member) for member in bare]}
    return {"$ref": f"#/$defs/{bare.__name__}"}


def _needed(schema: JSON, every: dict[str, dict[str, JSON]]) -> list[str]:
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        for reference in _refs(waiting.pop()):
            name = reference.removeprefix("#/$defs/")
            if name not in names:
                names.add(name)
                waiting.append(every[name])
    return sorted(names)


def _refs(node: JSON) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _refs(value)
    elif isinstance(node, list):
        for item in node:
            yield from _refs(item)


_RESOLVED: Final[dict[str, JSON]] = {
    "properties": {"kind": {}, "Value": {}, "Raise": _TEXT},
    "additionalProperties": False,
    "oneOf": [{"required": ["Value"]}, {"required": ["Raise"]}],
}
