"""How every value of ours is built, shown, written and read, once for all classes.

Built by a user: checked whole, JSON copied, faults raised as `InvalidInput` without the value. Read from our own
bytes: types checked, contents trusted (they were checked before they were written). Read from somebody's JSON: both.
Optional fields that are unset are absent on the wire, never null. Fields of another version are kept in `unknown`
and written back (P10). A repr shows only what a class lists in `SHOWN`: names, ids, sizes (P13).
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, cast, get_args, get_origin

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

from ..errors import Corrupt, InvalidInput
from . import wire
from .fields import MILLISECOND, JsonObject, OpenWord, Trust, from_ms, to_ms
from .limits import JSON, LIMITS, check_json


class Model(BaseModel):
    """A frozen value, equal by value, made with keywords; raises `InvalidInput` naming field and fault."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=()
    )

    SHOWN: ClassVar[tuple[str, ...]] = ()
    """The fields a repr may show."""
    ALWAYS: ClassVar[frozenset[str]] = frozenset()
    """The fields that are written even at their default."""
    NULLABLE: ClassVar[frozenset[str]] = frozenset()
    """The fields for which null is a value, beside required JSON ones."""

    RULES: ClassVar[dict[str, JSON]] = {}
    """What its JSON Schema says beside the fields: the rules that hold between them."""

    MOST: ClassVar[int] = LIMITS.record_bytes
    """How many bytes a stored record may take, unless the caller says otherwise."""

    unknown: JsonObject = Field(default_factory=dict)
    """Fields of another version: kept, written back, never acted on."""

    def __init__(self, /, **data: JSON) -> None:
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            fault = _explain(type(self), error, {})
        else:
            return
        # Outside the handler, so that the error does not carry the input along as its context (P13).
        raise fault

    # Pydantic calls an overridden __init__ for nested dicts unless it is marked as not being one.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        return (
            (name, getattr(self, name)) for name in self.SHOWN if getattr(self, name) not in (None, (), "")
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields. What was worked out of the old ones, such as a digest, is left behind."""
        made = super().model_copy(update=update, deep=deep)
        for name in made.__dict__.keys() - type(self).model_fields.keys():
            del made.__dict__[name]
        return made

    def to_wire(self) -> dict[str, JSON]:
        """The plain map of this value: what `wire.encode` takes and, bytes apart, JSON."""
        values, out = self.__dict__, self._head()
        for name, key, default, always, nullable in _plan(type(self)):
            value = values[name]
            if not always and (value is default or value == default):
                continue
            if value is not None or nullable:
                out[key] = value if type(value) in _PLAIN else _dump(value)
        for key, kept in self.unknown.items():
            out.setdefault(key, kept)
        return out

    def to_json(self) -> JSON:
        """The same as JSON for the edges: times in `_ms`, bytes as base64 text."""
        return _jsonable(self.to_wire())

    @classmethod
    def from_wire(cls, data: JSON) -> Self:
        """The value behind a map that `wire.decode` gave. Raises `InvalidInput` where a type is wrong."""
        return cls._read(data, Trust.OURS)

    @classmethod
    def from_json(cls, data: JSON) -> Self:
        """The value behind JSON that somebody sent; every limit is checked. Raises `InvalidInput`."""
        return cls._read(data, Trust.THEIRS)

    def to_bytes(self, *, most: int | None = None, compress_over: int = 1024) -> bytes:
        """This value as a stored record. Raises `InvalidInput` when it takes more than `most` (or `MOST`) bytes."""
        limit = self.MOST if most is None else most
        return wire.encode(self.to_wire(), most=limit, compress_over=compress_over, field=type(self).__name__)

    @classmethod
    def from_bytes(cls, data: bytes, *, key: str = "") -> Self:
        """The value behind a stored record; raises `Corrupt` with its `key` when it cannot be read."""
        record = wire.decode(data, key=key)
        try:
            return cls._read(record, Trust.OURS)
        except InvalidInput as fault:
            reason = f"{fault.field} {fault.problem}"
        raise Corrupt(key, reason)

    @classmethod
    def _wire_name(cls, name: str) -> str:
        """What a field is called on the wire; a foreign wire has its own spelling."""
        return name

    def _head(self) -> dict[str, JSON]:
        return {}

    @classmethod
    def made(cls, values: dict[str, JSON]) -> Self:
        """The value of fields that fit, since we made them ourselves; none that is required may be missing.

        Nothing is checked or copied.
        """
        defaults, fresh = _defaults(cls)
        whole = defaults | values
        for name, factory in fresh:
            if name not in values:
                whole[name] = factory()
        one = cls.__new__(cls)
        _set(one, "__dict__", whole)
        _set(one, "__pydantic_fields_set__", set(values))
        _set(one, "__pydantic_extra__", None)
        _set(one, "__pydantic_private__", None)
        return one

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        if not isinstance(data, dict):
            raise InvalidInput(cls.__name__, "is no object", "an object with text keys")
        values, unknown, known = {}, {}, _by_wire(cls)
        for name, value in data.items():
            slot = known.get(name)
            if slot is not None:  # most fields are plain: looking here saves a call
                plain = slot.read is None and value is not None
                values[slot.name] = value if plain else slot.take(value, trust)
            else:
                unknown[name] = value if trust is Trust.OURS else check_json(str(name), value)
        return cls._make(values, unknown, trust)

    @classmethod
    def _make(cls, values: dict[str, JSON], unknown: dict[str, JSON], trust: Trust) -> Self:
        if unknown:
            values["unknown"] = unknown
        try:
            made: Self = cls.__pydantic_validator__.validate_python(values, strict=True, context=trust)
        except ValidationError as error:
            fault = _explain(cls, error, {slot.name: slot.wire for slot in slots(cls)})
        else:
            return made
        raise fault


_set = object.__setattr__


class Tagged(Model):
    """One variant of an open union: a tag on the wire says which. A tag of another version is kept whole (P10)."""

    TAG_KEY: ClassVar[str]
    TAG: ClassVar[str] = ""
    VARIANTS: ClassVar[dict[str, type["Tagged"]]]
    OTHER: ClassVar[type["Tagged"]]

    def _head(self) -> dict[str, JSON]:
        return {self.TAG_KEY: self.TAG}

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        if not isinstance(data, dict):
            raise InvalidInput(cls.__name__, "is no object", f"an object with {cls.TAG_KEY!r}")
        tag = data.get(cls.TAG_KEY)
        if not isinstance(tag, str) or not tag:
            raise InvalidInput(cls.TAG_KEY, "is missing or no text", ", ".join(cls.VARIANTS))
        variant = cls.VARIANTS.get(tag)
        if variant is None:
            raw = data if trust is Trust.OURS else check_json(cls.__name__, data)
            made: Tagged = cls.OTHER._make({"raw": raw}, {}, trust)
        else:
            made = variant._read_fields(  # noqa: SLF001 - a method of the same family
                {name: value for name, value in data.items() if name != cls.TAG_KEY}, trust
            )
        if not isinstance(made, cls):
            raise InvalidInput(cls.TAG_KEY, "names another variant", cls.TAG)
        return made

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        return super()._read(data, trust)


class Slot(NamedTuple):
    """How one field of a class travels."""

    name: str
    wire: str
    type: Any
    """The bare type, without `None` and annotations."""
    default: object
    required: bool
    always: bool
    nullable: bool
    read: Callable[[JSON, Trust], object] | None

    def take(self, value: JSON, trust: Trust) -> object:
        """The field's value behind its wire form; raises `InvalidInput` for a null that is none of its values."""
        if value is None:
            if self.nullable:
                return None
            raise InvalidInput(self.wire, "is null", "a value, or no such field")
        if self.read is None:
            return value
        try:
            return self.read(value, trust)
        except InvalidInput as fault:
            inner = fault
        raise inner.inside(self.wire)


@cache
def slots(model: type[Model]) -> tuple[Slot, ...]:
    """The fields of a class in wire order, without `unknown`."""
    return tuple(_slot(model, name) for name in model.model_fields if name != "unknown")


@cache
def _plan(model: type[Model]) -> tuple[tuple[str, str, object, bool, bool], ...]:
    """What writing needs of the slots, as plain tuples: unpacking them is the fastest there is."""
    return tuple((slot.name, slot.wire, slot.default, slot.always, slot.nullable) for slot in slots(model))


@cache
def _defaults(model: type[Model]) -> tuple[dict[str, object], tuple[tuple[str, Callable[[], Any]], ...]]:
    """The defaults of a class, and what makes those that must be new for each value."""
    kept: dict[str, object] = {}
    fresh: list[tuple[str, Callable[[], Any]]] = []
    for name, field in model.model_fields.items():
        if field.default_factory is not None:
            fresh.append((name, cast("Callable[[], Any]", field.default_factory)))
        elif not field.is_required():
            kept[name] = field.default
    return kept, tuple(fresh)


@cache
def _by_wire(model: type[Model]) -> dict[str, Slot]:
    return {slot.wire: slot for slot in slots(model)}


def _slot(model: type[Model], name: str) -> Slot:
    field = model.model_fields[name]
    bare = bare_type(field.annotation)
    suffix = "_ms" if bare in (AwareDatetime, timedelta) else ""
    required = field.is_required()
    return Slot(
        name=name,
        wire=f"{model._wire_name(name)}{suffix}",  # noqa: SLF001 - the same house
        type=bare,
        default=field.get_default(call_default_factory=True),
        required=required,
        always=required or name in model.ALWAYS,
        nullable=name in model.NULLABLE or (bare is Any and (required or name in model.ALWAYS)),
        read=_reader(bare),
    )


def bare_type(annotation: JSON) -> JSON:
    """The one type a field is about: annotations, `None` and literals are taken away."""
    origin: object = get_origin(annotation)
    if origin is Annotated:
        return bare_type(get_args(annotation)[0])
    if origin in (Union, UnionType):
        kept = [
            part for part in get_args(annotation) if part is not NoneType and get_origin(part) is not Literal
        ]
        return bare_type(kept[0])
    return annotation


def _reader(bare: JSON) -> Callable[[JSON, Trust], object] | None:
    origin: object = get_origin(bare)
    if origin is tuple:
        return _list_reader(bare_type(get_args(bare)[0]))
    if bare is AwareDatetime:
        return lambda value, _trust: from_ms(_whole(value, "milliseconds since 1970"))
    if bare is timedelta:
        return lambda value, _trust: timedelta(milliseconds=_whole(value, "milliseconds"))
    if bare is bytes:
        return _read_bytes
    if isinstance(bare, type) and issubclass(bare, OpenWord):
        return lambda value, _trust: bare.read(_string(value))
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return lambda value, _trust: _member(bare, value)
    if isinstance(bare, type) and issubclass(bare, Model):
        return bare._read  # noqa: SLF001 - a method of the same family
    return None


def _list_reader(element: JSON) -> Callable[[JSON, Trust], object]:
    read = _reader(element)

    def read_list(value: JSON, trust: Trust) -> object:
        if not isinstance(value, list):
            raise InvalidInput("", "is no list", "a list")
        return tuple(value) if read is None else tuple(read(item, trust) for item in value)

    return read_list


_FIRST_MS, _LAST_MS = to_ms(datetime.min.replace(tzinfo=UTC)), to_ms(datetime.max.replace(tzinfo=UTC))


def _whole(value: JSON, unit: str) -> int:
    if type(value) is not int or not _FIRST_MS <= value <= _LAST_MS:
        raise InvalidInput("", "is no whole number in range", unit)
    return value


def _string(value: JSON) -> str:
    if not isinstance(value, str):
        raise InvalidInput("", "is no text", "text")
    return value


def _member(kind: type[StrEnum], value: JSON) -> StrEnum:
    if value not in list(kind):
        raise InvalidInput("", "is not one of the words", ", ".join(kind))
    return kind(value)


def _read_bytes(value: JSON, trust: Trust) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(_string(value) if trust is Trust.THEIRS else "?", validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput("", "holds no bytes", "base64 text")


_PLAIN = frozenset((str, int, bool, float, bytes, dict, list, NoneType))


def _dump(value: JSON) -> JSON:
    if isinstance(value, Model):
        return value.to_wire()
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, datetime):
        return to_ms(value)
    if isinstance(value, timedelta):
        return value // MILLISECOND
    return value


def _jsonable(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _explain(model: type[Model], error: ValidationError, names: dict[str, str]) -> InvalidInput:
    """The first fault of a pydantic error in our words; the value that was refused is left behind."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind, place = first["type"], [str(part) for part in first["loc"][:4]]
    field = ".".join([*(names.get(part, part) for part in place[:1]), *place[1:]]) or model.__name__
    if kind == "missing":
        return InvalidInput(field, "is missing", "a value")
    if kind == "extra_forbidden":
        allowed = ", ".join(slot.name for slot in slots(model))
        return InvalidInput(field, f"is no field of {model.__name__}", allowed)
    return InvalidInput(field, "has the wrong type or value", first["msg"].removeprefix("Input should be "))
