"""Forms from schemas and from values: what is typed comes back as the JSON that was meant, of the same sorts."""

from typing import Any

import pytest
from starlette.datastructures import FormData, UploadFile

from broker.gateway.inbox.forms import ABSENT, Field, Misread, form_from, form_of, mark, read
from broker.gateway.inbox.visible import brief, changes, pieces, plain, rows

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["team", "urgent", "minutes"],
    "properties": {
        "team": {"enum": ["bags", "refunds", 7]},
        "urgent": {"type": "boolean"},
        "minutes": {"type": "integer"},
        "share": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed"]}},
        "who": {"$ref": "#/$defs/Who"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "rest": {"type": "array", "items": {"type": "object"}},
        "version": {"const": 3},
    },
    "$defs": {"Who": {"type": "object", "properties": {"phone": {"type": "string"}}, "required": ["phone"]}},
}


def typed(form: Field) -> FormData:
    """What a browser sends of a form that nobody touched."""
    sent: list[tuple[str, str | UploadFile]] = []
    for one in form.fields or [form]:
        if one.kind == "group":
            sent += typed(one).multi_items()
        elif one.kind in ("choice", "choices"):
            sent += [(one.name, str(n)) for n in range(len(one.options)) if one.is_chosen(n)]
        elif one.kind != "fixed":
            sent.append((one.name, one.shown.replace("\n", "\r\n")))
    return FormData(sent)


def test_each_sort_of_field_is_made_of_its_schema() -> None:
    form = form_of(SCHEMA, "payload")
    assert {one.name.removeprefix("payload."): one.kind for one in form.fields} == {
        "team": "choice", "urgent": "boolean", "minutes": "integer", "share": "number", "tags": "lines",
        "days": "choices", "who": "group", "note": "text", "rest": "json", "version": "fixed",
    }  # fmt: skip


def test_what_is_typed_becomes_json_of_the_right_sorts() -> None:
    sent: list[tuple[str, str | UploadFile]] = [
        ("payload.team", "2"), ("payload.urgent", "false"), ("payload.minutes", "0"), ("payload.share", "0.5"),
        ("payload.tags", "a\r\n\r\nb c"), ("payload.days", "0"), ("payload.days", "2"), ("payload.who.phone", "1"),
        ("payload.note", ""), ("payload.rest", '[{"a": 1}]'),
    ]  # fmt: skip
    assert read(form_of(SCHEMA, "payload"), FormData(sent)) == {
        "team": 7, "urgent": False, "minutes": 0, "share": 0.5, "tags": ["a", "b c"], "days": ["mon", "wed"],
        "who": {"phone": "1"}, "note": None, "rest": [{"a": 1}], "version": 3,
    }  # fmt: skip


def test_what_is_left_empty_is_left_out_where_it_may_be() -> None:
    schema = {**SCHEMA, "required": []}
    found = read(form_of(schema, "payload"), FormData([]))
    assert found == {"note": None, "version": 3}
    assert read(form_of({"type": "integer"}, "payload"), FormData([("payload", "7")])) == 7


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, "seven"), ({"type": "integer"}, "7.5"), ({"type": "integer"}, "true"),
        ({"type": "number"}, "NaN"), ({"type": "boolean"}, ""), ({"enum": ["a"]}, "4"), ({}, "{"),
        ({"enum": ["a"]}, ""),
        ({"type": "array", "items": {"type": "integer"}}, "1\nx"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read_says_so_at_its_field(schema: dict[str, Any], text: str) -> None:
    form = form_of(schema, "payload")
    with pytest.raises(Misread):
        read(form, FormData([("payload", text)]))
    assert form.fault
    assert form.shown == text


VALUES: dict[str, Any] = {
    "text": "Ines", "empty": "", "long": "one\ntwo", "leading": "\n x ", "returns": "a\r\nb", "bell": "\x07",
    "number": 12, "big": 2**63, "exact": 0.1, "whole": 4.0, "yes": True, "no": False, "nothing": None,
    "list": ["a", "b"], "spaces": [" a"], "numbers": [1, 2.5], "mixed": [1, "a"], "deep": {"to": {"a": [True]}},
    "none": {}, "nil": [], "objects": [{"a": 1}], "digits": "007", "quoted": '"x"', "key with space": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_F17_a_form_that_nobody_touched_gives_back_what_it_was_made_of(name: str) -> None:
    """Every sort of value keeps its type; what a browser would change stands in a JSON box."""
    form = form_from({name: VALUES[name], "other": 1}, "arguments")
    found = read(form, typed(form))
    assert found == {name: VALUES[name], "other": 1}
    assert repr(found[name]) == repr(VALUES[name])


def test_a_schema_that_is_too_deep_or_strange_gets_a_json_box() -> None:
    again = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}
    loop: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": again}}
    assert form_of(loop, "payload").kind == "group"
    self_referring = {"$ref": "#"}
    assert form_of(self_referring, "payload").kind == "json"
    wide = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(200)}}
    assert form_of(wide, "payload").kind == "json"
    assert (
        form_of({"type": "object", "properties": {"a": {"type": "string"}}}, "payload", {"b": 1}).kind
        == "json"
    )
    assert form_of(True, "payload").kind == "json"  # noqa: FBT003 - a schema that everything fits


def test_a_fault_is_put_at_the_field_that_its_path_names() -> None:
    form = form_of(SCHEMA, "payload")
    assert mark(form, "payload.who.phone", "is wrong")
    who = next(one for one in form.fields if one.name == "payload.who")
    assert who.fields[0].fault == "is wrong"
    assert mark(form, "payload.tags[1]", "no")
    assert not mark(form, "answer.kind", "no")


def test_characters_that_would_not_show_are_shown_by_their_names() -> None:
    assert [tuple(one) for one in pieces("pay \u202egro\u200b")] == [
        ("pay ", False), ("U+202E", True), ("gro", False), ("U+200B", True),
    ]  # fmt: skip
    assert plain("a\x00\nb") == "a[U+0000]\nb"
    assert pieces("plain, é, 日本 \n\t") == pieces("plain, é, 日本 \n\t")
    assert all(not one.is_hidden for one in pieces("plain, é, 日本\xa0\n\t"))


def test_a_value_is_a_tree_until_it_is_too_large_for_one() -> None:
    found = rows({"a": {"b": [1, None]}, "c": "x"})
    assert found is not None
    assert [(row.depth, row.name, row.kind) for row in found] == [
        (0, "a", "parts"), (1, "b", "parts"), (2, "1", "number"), (2, "2", "nothing"), (0, "c", "text"),
    ]  # fmt: skip
    assert rows([0] * 1000) is None
    assert rows("x") is None
    assert len(brief({"a": "x" * 5000, "b": 1})) <= 120


def test_F17_differences_are_told_place_by_place() -> None:
    before = {"a": 1, "b": {"c": "x", "d": [1, 2]}, "e": True}
    after = {"a": 1.0, "b": {"c": "y", "d": [1, 3]}, "f": None}
    assert [tuple(one) for one in changes(before, after)] == [
        ("b.c", "x", "y"), ("b.d[2]", "2", "3"), ("e", "true", None), ("f", None, "null"),
    ]  # fmt: skip
    assert changes(before, before) == []
    assert read(Field("x", "", "text", is_required=False), FormData([])) is ABSENT
