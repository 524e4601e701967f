"""AG-UI's wire at random: what we write we read, unknown things survive, schemas and readers refuse the same.

The values are drawn from the fields of the models, so a new optional field is held to the rules of null by itself.
"""

from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from broker.core.limits import JSON
from broker.core.shape import Model, Slot, Tagged, bare_type, slots
from broker.errors import InvalidInput
from broker.interop import agui
from broker.interop.agui import shapes
from tests.unit.strategies import ids, json_objects, json_values, subagents

SHAPES: dict[str, type[Model]] = {
    "Interrupt": agui.Interrupt,
    "ResumeEntry": agui.ResumeEntry,
    "RunAgentInput": agui.RunAgentInput,
    "RunStarted": agui.RunStarted,
    "RunFinished": agui.RunFinished,
    "RunError": agui.RunError,
    "HumanInTheLoop": agui.HumanInTheLoop,
    "Capabilities": agui.Capabilities,
    "RunOutcome": agui.RunOutcome,
    "SubagentOutcome": agui.SubagentOutcome,
}
VARIANTS = {f"RunOutcome {tag}": kind for tag, kind in agui.RunOutcome.VARIANTS.items()}
FIELDS = [
    pytest.param(kind, slot, id=f"{name}.{slot.wire}")
    for name, kind in (SHAPES | VARIANTS).items()
    if kind not in (agui.RunOutcome, agui.SubagentOutcome)
    for slot in slots(kind)
]
unknown = st.dictionaries(st.sampled_from(["newer", "x-y", "snake_case"]), json_values, max_size=2)


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(agui.schemas()[name])


def values(kind: Any) -> st.SearchStrategy[Any]:
    """What a field of this type may be on the wire."""
    if get_origin(kind) is tuple:
        element = bare_type(get_args(kind)[0])
        key = (lambda one: str(one.get("id", one))) if element is agui.Interrupt else repr
        return st.lists(values(element), min_size=1, max_size=3, unique_by=key)
    if get_origin(kind) in (dict, list):
        return json_objects if get_origin(kind) is dict else st.lists(json_values, max_size=3)
    if kind is Any:
        return json_values.filter(lambda value: value is not None)
    if kind is bool:
        return st.booleans()
    if issubclass(kind, StrEnum):
        return st.sampled_from([str(word) for word in kind])
    return wires(kind) if issubclass(kind, Model) else ids


@st.composite
def wires(draw: st.DrawFn, kind: type[Model]) -> dict[str, JSON]:
    """A whole value, with any of its optional fields, and some of another version."""
    if kind is agui.SubagentOutcome:
        return draw(subagents).to_wire()
    out: dict[str, JSON] = {}
    if issubclass(kind, Tagged):
        kind = draw(st.sampled_from([one for one in kind.VARIANTS.values() if issubclass(one, kind)]))
        out["type"] = getattr(kind, "TAG", "")
    elif issubclass(kind, agui.Event):
        out["type"] = kind.TYPE
    out |= {
        slot.wire: draw(values(slot.type)) for slot in slots(kind) if slot.required or draw(st.booleans())
    }
    if kind is agui.Interrupt and "toolCallId" in out:
        out["reason"] = draw(st.sampled_from([shapes.TOOL_CALL, "acme:hold"]))
    return draw(unknown) | out


def reads(kind: type[Model], wire: JSON) -> bool:
    try:
        kind.from_json(wire)
    except InvalidInput:
        return False
    return True


def schema_of(kind: type[Model]) -> str:
    return "RunOutcome" if issubclass(kind, agui.RunOutcome) else kind.__name__


@pytest.mark.row("G1", "G4", "G7", "G9")
@pytest.mark.parametrize("kind", SHAPES.values(), ids=SHAPES)
def test_G1_what_is_read_is_written_and_fits_the_schema(kind: type[Model]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(wire=wires(kind))
    def check(wire: dict[str, JSON]) -> None:
        value = kind.from_json(wire)
        assert value.to_json() == wire
        assert kind.from_json(value.to_json()) == value
        assert agui.read_compat(kind, wire) == (value, ())
        assert validator(kind.__name__).is_valid(wire)

    check()


@pytest.mark.row("G5", "G8")
@pytest.mark.parametrize("kind", SHAPES.values(), ids=SHAPES)
def test_G5_a_broken_copy_is_refused_by_reader_and_schema_alike(kind: type[Model]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(wire=wires(kind), data=st.data())
    def check(wire: dict[str, JSON], data: st.DataObject) -> None:
        known = sorted(
            {slot.wire for slot in slots(kind)} | wire.keys() | {"type", "interrupts", "interruptIds"}
        )
        change: JSON = data.draw(st.sampled_from([None, 7, "word", [], {}, [7], True, "absent"]))
        key = data.draw(st.sampled_from(known))
        broken = {name: kept for name, kept in wire.items() if name != key}
        if change != "absent":
            broken[key] = change
        assert validator(kind.__name__).is_valid(broken) is reads(kind, broken), broken

    check()


@pytest.mark.row("G2")
@pytest.mark.parametrize(("kind", "slot"), FIELDS)
def test_G2_null_and_absent_in_every_field(kind: type[Model], slot: Slot) -> None:
    @settings(max_examples=15, deadline=None)
    @given(wire=wires(kind))
    def check(wire: dict[str, JSON]) -> None:
        absent = {name: kept for name, kept in wire.items() if name != slot.wire}
        null = {**wire, slot.wire: None}
        check_schema = validator(schema_of(kind))
        if wire.get("reason") == shapes.TOOL_CALL and slot.wire in {"reason", "toolCallId"}:
            return
        assert reads(kind, absent) is not slot.required
        assert check_schema.is_valid(absent) is not slot.required
        assert reads(kind, null) is slot.nullable
        assert check_schema.is_valid(null) is slot.nullable
        if slot.required:
            with pytest.raises(InvalidInput) as fault:
                kind.from_json(null)
            assert fault.value.field == slot.wire
        elif not slot.nullable:
            assert agui.read_compat(kind, null) == (
                kind.from_json(absent),
                (f"{slot.wire} is null; read as absent",),
            )

    check()


def test_the_schemas_are_schemas_of_everything_here() -> None:
    found = agui.schemas()
    assert found.keys() == SHAPES.keys()
    for name, schema in found.items():
        assert schema["title"] == name
        Draft202012Validator.check_schema(schema)
