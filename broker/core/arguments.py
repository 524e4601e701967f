"""What the arguments of a function may be, as a JSON Schema drawn from its signature."""

import inspect
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import ConfigDict, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from .digest import canonical_json
from .limits import JSON

MOST_BYTES: Final = 64 * 1024
"""A larger schema is not sent with a question."""

_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_SCHEMAS: Final[WeakKeyDictionary[Callable[..., Any], dict[str, JSON] | None]] = WeakKeyDictionary()


class _Generator(GenerateJsonSchema):
    """Draws no titles, which only repeat the names, and says nothing of defaults that have no JSON form."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - as its parent has it
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the parent's parameters
        """Never."""
        return False


def arguments_schema(function: Callable[..., Any]) -> dict[str, JSON] | None:
    """The JSON Schema of a function's arguments by name; None where it does not say, or the extra `schema` is missing.

    A parameter without an annotation, or with one that has no JSON form, may be anything.
    """
    if find_spec("jsonschema") is None:
        return None
    try:
        if function not in _SCHEMAS:
            _SCHEMAS[function] = _drawn(function)
        return _SCHEMAS[function]
    except TypeError:  # what cannot be remembered is looked at each time
        return _drawn(function)


def _drawn(function: Callable[..., Any]) -> dict[str, JSON] | None:
    signature = _signature(function)
    if signature is None:
        return None
    takes_more = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    config, fields = ConfigDict(extra="allow" if takes_more else "forbid"), dict(_fields(signature))
    model = create_model("Arguments", __config__=config, **fields)
    found: dict[str, JSON] = model.model_json_schema(schema_generator=_Generator)
    return found if len(canonical_json(found)) <= MOST_BYTES else None


def _fields(signature: inspect.Signature) -> Iterator[tuple[str, Any]]:
    """Each parameter as a field: names that pydantic keeps for itself are aliases here."""
    for number, (name, one) in enumerate(signature.parameters.items()):
        if one.kind in _BY_NAME:
            # A default may have no JSON form, so none is shown.
            given = (
                Field(alias=name) if one.default is one.empty else Field(alias=name, default_factory=object)
            )
            yield f"p{number}", (_type(one.annotation), given)


def _type(annotation: Any) -> Any:
    """What a parameter may be: anything, where its annotation cannot be drawn."""
    if annotation is inspect.Parameter.empty or isinstance(annotation, str):
        return Any
    try:
        TypeAdapter(annotation).json_schema(schema_generator=_Generator)
    except Exception:  # noqa: BLE001 - it may be of any class, which may say by code of its own what it takes
        return Any
    return annotation


def _signature(function: Callable[..., Any], *, looks_up: bool = True) -> inspect.Signature | None:
    """How a function is called, its annotations as types where they can be looked up; None where it does not say."""
    try:
        return inspect.signature(function, eval_str=looks_up)
    except Exception:  # noqa: BLE001 - an annotation may be any expression, of names that are not there at run time
        return _signature(function, looks_up=False) if looks_up else None
