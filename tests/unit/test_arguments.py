"""What is drawn of a function's signature, by which edits of its calls are held to its types (F17)."""

import functools
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from broker.core import arguments, questions
from broker.core.arguments import arguments_schema
from broker.core.models import Action, Interrupt
from broker.core.policy import check_schema, misfit
from broker.core.tools import Tool, gated


class Item(BaseModel):
    name: str
    parts: list["Item"] = []


class Odd:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        raise ZeroDivisionError


class Shop:
    def sell(self, item: Item) -> None: ...

    def __call__(self, item: Item) -> None: ...


def book(
    item: Item, count: Annotated[int, Field(gt=0)], kind: Literal["a", "b"] = "a", *, model_x: "int | None" = None,
    _lock: threading.Event | None = None, call: Callable[[], None] = print, schema: int = 7, odd: Odd | None = None,
) -> None:  # fmt: skip
    """Names that pydantic keeps for itself, types that have no JSON form, one whose schema cannot be made."""


def unknown(count: int, item: "NotThere") -> None:  # type: ignore[name-defined] # noqa: F821
    """Annotated with a name that is there for type checkers only."""


def open_to_all(count: int, **rest: str) -> None: ...


FITS: list[tuple[Any, dict[str, Any]]] = [
    (book, {"item": {"name": "x", "parts": [{"name": "y"}]}, "count": 1}),
    (
        book,
        {
            "item": {"name": "x"},
            "count": 1,
            "_lock": 5,
            "call": "x",
            "schema": 1,
            "odd": {},
            "model_x": None,
        },
    ),
    (lambda amount: amount, {"amount": [1]}),
    (unknown, {"count": 1, "item": [None]}),
    (open_to_all, {"count": 1, "more": "x"}),
    (functools.partial(book, count=3), {"item": {"name": "x"}}),
    (Shop().sell, {"item": {"name": "x"}}),
    (Shop(), {"item": {"name": "x"}}),
]
BREAKS: list[tuple[Any, dict[str, Any]]] = [
    (book, {"item": {"name": "x"}, "count": "many"}),
    (book, {"item": {"name": "x"}, "count": 0}),
    (book, {"item": {"name": "x", "parts": [{"name": 1}]}, "count": 1}),
    (book, {"item": {"name": "x"}, "count": 1, "kind": "c"}),
    (book, {"item": {"name": "x"}, "count": 1, "model_x": "1"}),
    (book, {"item": {"name": "x"}}),
    (book, {"item": {"name": "x"}, "count": 1, "p1": 2}),
    (functools.partial(book, count=3), {"item": {"name": "x"}, "count": "many"}),
    (Shop().sell, {"item": "x"}),
    (Shop(), {"item": "x"}),
]


@pytest.mark.parametrize(("function", "given"), FITS)
def test_what_the_function_takes_fits(function: Any, given: dict[str, Any]) -> None:
    schema = arguments_schema(function)
    assert schema is not None
    check_schema(schema)
    assert misfit(schema, given) is None


@pytest.mark.parametrize(("function", "given"), BREAKS)
def test_F17_other_types_do_not(function: Any, given: dict[str, Any]) -> None:
    schema = arguments_schema(function)
    assert schema is not None
    assert misfit(schema, given) is not None


def test_a_function_that_says_nothing_has_no_schema() -> None:
    assert arguments_schema(dict) is None


def test_a_schema_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MOST_BYTES", 10)
    assert arguments_schema(lambda amount: amount) is None


def test_without_the_extra_no_schema_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question could not be asked otherwise; names are held against the function when the call is made."""
    monkeypatch.setattr(arguments, "find_spec", lambda _: None)
    assert arguments_schema(book) is None


def test_a_question_that_offers_no_edit_is_as_it_was() -> None:
    """Its digest is that which earlier builds gave it, so a pause that is repeated is the same one."""
    action = Action(tool="book", arguments={})
    plain = questions.approval(Tool.of(gated(open_to_all)), action, "c1")
    assert plain.content_digest == Interrupt.approval(action, "c1").content_digest
    editable = questions.approval(Tool.of(gated(offers=("approve", "edit"))(open_to_all)), action, "c1")  # type: ignore[arg-type]
    assert editable.arguments_schema == arguments_schema(open_to_all)
    assert editable.action is not None
    assert editable.action.digest == action.digest
