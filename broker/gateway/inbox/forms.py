"""Forms made from JSON Schemas, and from values: fields for what a person can fill in, a JSON box for all else.

Only a first help: what is sent is held against the schema where every answer is (F16), wherever it comes from.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ...core.limits import JSON
from .visible import raw

MOST_LEVELS: Final = 5
MOST_FIELDS: Final = 60
LONG_TEXT: Final = 80
_SCALARS: Final = {"string": "text", "integer": "integer", "number": "number"}
ABSENT: Final = object()
"""Stands for a field that was left out."""


class Posted(Protocol):
    """The fields of a form that came back."""

    def getlist(self, key: Any) -> list[Any]:
        """All values under one name."""
        ...


@dataclass(slots=True)
class Field:
    """One field of a form. `kind`: text, long, integer, number, boolean, choice, choices, lines, group, fixed, json."""

    name: str
    label: str
    kind: str
    is_required: bool = True
    takes_null: bool = False
    hint: str = ""
    options: list[JSON] = field(default_factory=list, repr=False)
    fields: list["Field"] = field(default_factory=list, repr=False)
    item: str = "text"
    """For `lines`: what each line is."""
    value: JSON = field(default=ABSENT, repr=False)
    """What it holds at first."""
    typed: list[str] | None = field(default=None, repr=False)
    """What was typed into it, where that came back."""
    fault: str = ""

    @property
    def shown(self) -> str:
        """What stands in the field."""
        if self.typed is not None:
            return self.typed[0] if self.typed else ""
        if self.value is ABSENT or (self.value is None and self.kind != "json"):
            return ""
        if self.kind == "lines":
            return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in self.value)
        if isinstance(self.value, str) and self.kind != "json":
            return self.value
        if self.kind in ("json", "fixed"):
            return raw(self.value)
        return json.dumps(self.value)

    def is_chosen(self, option: int) -> bool:
        """Whether an option is chosen."""
        if self.typed is not None:
            return str(option) in self.typed
        held = self.value if self.kind == "choices" and isinstance(self.value, list) else [self.value]
        return any(_same(self.options[option], one) for one in held)

    def told(self, option: int) -> str:
        """An option in words."""
        chosen = self.options[option]
        return chosen if isinstance(chosen, str) else json.dumps(chosen, ensure_ascii=False)


def _same(one: JSON, other: JSON) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


class Misread(Exception):
    """Some fields hold nothing that can be read; each says so in its `fault`."""


def form_of(schema: JSON, name: str, value: JSON = ABSENT) -> Field:
    """The form for a value that fits a schema: one group of fields, or one field."""
    made = _Maker(schema).field(schema, name, "", required=True, value=value, level=0)
    return made if made is not None else Field(name, "", "json", value=value)


def form_from(value: JSON, name: str) -> Field:
    """The form for a value like this one: each field keeps its sort (F17)."""
    return form_of(_schema_of(value), name, value)


def _schema_of(value: JSON) -> JSON:
    """A schema that says what sorts of values there are, and nothing of what is allowed."""
    if isinstance(value, dict) and value:
        return {"type": "object", "properties": {key: _schema_of(one) for key, one in value.items()},
                "required": list(value)}  # fmt: skip
    if isinstance(value, list) and value:
        sorts = [_schema_of(one) for one in value]
        return {"type": "array", "items": sorts[0]} if all(one == sorts[0] for one in sorts) else {}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int | float):
        return {"type": "number"}
    return {"type": "string"} if isinstance(value, str) else {}


class _Maker:
    """Makes the fields of one schema, and counts them."""

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._made = 0

    def field(
        self, schema: JSON, name: str, label: str, *, required: bool, value: JSON, level: int
    ) -> Field | None:
        self._made += 1
        if self._made > MOST_FIELDS or level > MOST_LEVELS:
            return None
        schema, nullable = self._resolved(schema)
        if value is ABSENT and "default" in schema:
            value = schema["default"]
        made = Field(name, str(schema.get("title") or label), "json", required, nullable, value=value)
        made.hint = _hint(schema)
        self._shape(made, schema, level)
        if not _holds(made):
            made.kind, made.fields = "json", []
        return made

    def _shape(self, made: Field, schema: Mapping[str, Any], level: int) -> None:
        sort = schema.get("type")
        if "const" in schema:
            made.kind, made.value = "fixed", schema["const"]
        elif isinstance(schema.get("enum"), list) and schema["enum"]:
            made.kind, made.options = "choice", schema["enum"]
        elif sort == "boolean":
            made.kind = "boolean"
        elif sort in _SCALARS:
            made.kind = _SCALARS[sort]
            if sort == "string" and (_is_long(made.value) or schema.get("maxLength", 0) > LONG_TEXT):
                made.kind = "long"
        elif sort == "array":
            self._array(made, schema)
        elif sort == "object" and isinstance(schema.get("properties"), dict) and schema["properties"]:
            self._group(made, schema, level)

    def _array(self, made: Field, schema: Mapping[str, Any]) -> None:
        items, _ = self._resolved(schema.get("items"))
        if isinstance(items.get("enum"), list) and items["enum"]:
            made.kind, made.options = "choices", items["enum"]
        elif items.get("type") == "boolean":
            made.kind, made.item = "lines", "boolean"
        elif items.get("type") in _SCALARS:
            made.kind, made.item = "lines", _SCALARS[items["type"]]

    def _group(self, made: Field, schema: Mapping[str, Any], level: int) -> None:
        needed = schema.get("required", ())
        held = made.value if isinstance(made.value, dict) else {}
        if held.keys() - schema["properties"].keys():
            return  # more than the fields could give back
        for key, one in schema["properties"].items():
            inner = self.field(
                one,
                f"{made.name}.{key}",
                key,
                required=key in needed,
                value=held.get(key, ABSENT),
                level=level + 1,
            )
            if inner is None:
                made.fields = []
                return
            made.fields.append(inner)
        made.kind = "group"

    def _resolved(self, schema: JSON, most: int = MOST_LEVELS) -> tuple[Mapping[str, Any], bool]:
        """A schema behind references inside the whole, and whether it takes null beside something else."""
        for left in range(most, 0, -1):
            if not isinstance(schema, dict):
                return {}, False
            if isinstance(schema.get("$ref"), str):
                schema = self._referred(schema["$ref"])
                continue
            for word in ("anyOf", "oneOf"):
                if isinstance(ways := schema.get(word), list):
                    others = [one for one in ways if one != {"type": "null"}]
                    if len(others) == 1 and len(ways) > 1:
                        inner, _ = self._resolved(others[0], left - 1)
                        return {**inner, **{key: one for key, one in schema.items() if key != word}}, True
                    return {}, False
            sort = schema.get("type")
            if isinstance(sort, list):
                rest = [one for one in sort if one != "null"]
                return ({**schema, "type": rest[0]}, "null" in sort) if len(rest) == 1 else ({}, False)
            return schema, False
        return {}, False

    def _referred(self, reference: str) -> JSON:
        found = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        return found


def _hint(schema: Mapping[str, Any]) -> str:
    parts = [str(schema["description"])] if schema.get("description") else []
    for word, said in (("minimum", "at least"), ("maximum", "at most"), ("minLength", "characters or more:"),
                       ("maxLength", "characters at most:"), ("pattern", "fits"), ("format", "as")):  # fmt: skip
        if word in schema:
            parts.append(f"{said} {schema[word]}")
    return "; ".join(parts)


def _is_long(value: JSON) -> bool:
    return isinstance(value, str) and (len(value) > LONG_TEXT or "\n" in value)


def _holds(made: Field) -> bool:
    """Whether a field can hold its value and give it back unchanged."""
    value = made.value
    if value is ABSENT or made.kind == "json" or (value is None and made.takes_null):
        return True
    match made.kind:
        case "text" | "long":
            return isinstance(value, str) and _is_clean(value)
        case "integer" | "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "choice":
            return any(_same(value, one) for one in made.options)
        case "choices":
            return isinstance(value, list) and all(any(_same(v, o) for o in made.options) for v in value)
        case "lines":
            return isinstance(value, list) and all(
                not isinstance(one, str) or (one.strip() == one != "" and _is_clean(one) and "\n" not in one)
                for one in value
            )
        case "group":
            return isinstance(value, dict)
        case _:
            return True


def _is_clean(text: str) -> bool:
    return all(one.isprintable() or one in "\n\t" for one in text)


def read(form: Field, posted: Posted) -> JSON:
    """The value that a form came back with; `ABSENT` where it was left empty and may be. Raises `Misread`."""
    value, faults = _read(form, posted)
    if faults:
        raise Misread
    return value


def _read(one: Field, posted: Posted) -> tuple[JSON, int]:
    if one.kind == "group":
        if not one.is_required and _is_blank(one, posted):
            return ABSENT, 0
        found, faults = {}, 0
        for inner in one.fields:
            value, wrong = _read(inner, posted)
            faults += wrong
            if value is not ABSENT:
                found[inner.name[len(one.name) + 1 :]] = value
        return found, faults
    if one.kind == "fixed":
        return one.value, 0
    one.typed = [str(text).replace("\r\n", "\n") for text in posted.getlist(one.name)]
    try:
        return _parsed(one, one.typed), 0
    except ValueError as fault:
        one.fault = str(fault)
        return ABSENT, 1


def _is_blank(one: Field, posted: Posted) -> bool:
    """Whether nothing at all was filled in."""
    if one.kind == "group":
        return all(_is_blank(inner, posted) for inner in one.fields)
    return one.kind == "fixed" or not any(str(text).strip() for text in posted.getlist(one.name))


def _parsed(one: Field, typed: list[str]) -> JSON:
    text = typed[0] if typed else ""
    if one.kind == "choices":
        chosen = [
            one.options[int(place)] for place in typed if place.isdecimal() and int(place) < len(one.options)
        ]
        return chosen if chosen or one.is_required else ABSENT
    if one.kind == "lines":
        lines = [_scalar(one.item, line.strip()) for line in text.split("\n") if line.strip()]
        return lines if lines or one.is_required else ABSENT
    if not text.strip():
        return _nothing(one)
    if one.kind == "choice":
        if not text.isdecimal() or int(text) >= len(one.options):
            raise ValueError("Choose one of these.")
        return one.options[int(text)]
    return _scalar(one.kind, text)


def _nothing(one: Field) -> JSON:
    if one.takes_null:
        return None
    if not one.is_required:
        return ABSENT
    if one.kind in ("text", "long"):
        return ""
    raise ValueError("Choose one." if one.kind in ("boolean", "choice") else "This is needed.")


def _scalar(kind: str, text: str) -> JSON:
    if kind in ("text", "long"):
        return text
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):  # it may be nested without end
        raise ValueError("This is not JSON." if kind == "json" else f"{text!r} is no {kind}.") from None
    if kind == "json":
        return value
    fits = {"boolean": bool, "integer": int, "number": int | float}[kind]
    if not isinstance(value, fits) or (kind != "boolean" and isinstance(value, bool)):
        raise ValueError(f"{text!r} is no {kind}.")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _no_number(word: str) -> JSON:
    raise ValueError(word)


def mark(form: Field, path: str, problem: str) -> bool:
    """Puts a fault at the field that a path names, or at the nearest one around it; whether there is one."""
    for inner in form.fields:
        if mark(inner, path, problem):
            return True
    if path == form.name or path.startswith((f"{form.name}.", f"{form.name}[")):
        form.fault = problem
        return True
    return False
