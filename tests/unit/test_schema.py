"""The published JSON Schemas and the readers agree: what one refuses, the other refuses."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from broker.core import outcomes
from broker.core.answers import parse_answer
from broker.core.dispositions import SubagentOutcome, parse_disposition
from broker.core.kinds import parse_kind
from broker.core.limits import JSON
from broker.core.schema import schema_for, schemas
from broker.core.shape import Model
from broker.errors import InvalidInput

from . import strategies as make

READERS: dict[str, Any] = {
    **{model.__name__: model.from_json for model in make.RECORDS},
    "InterruptionKind": parse_kind,
    "Answer": parse_answer,
    "Disposition": parse_disposition,
    "SubagentOutcome": SubagentOutcome.from_json,
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{model.__name__: strategy for model, strategy in make.RECORDS.items()},
    "InterruptionKind": make.kinds,
    "Answer": make.answers,
    "Disposition": make.dispositions,
    "SubagentOutcome": make.subagents,
}


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema_for(name))


def reads(name: str, data: JSON) -> bool:
    try:
        READERS[name](data)
    except InvalidInput:
        return False
    return True


def test_every_schema_is_one() -> None:
    for name, schema in schemas().items():
        assert schema["title"] == name
        Draft202012Validator.check_schema({**schema, "$defs": {}})


@pytest.mark.parametrize("name", READERS)
def test_what_we_write_fits_and_a_broken_copy_is_refused_by_both(name: str) -> None:
    @given(value=VALUES[name], data=st.data())
    def check(value: Model, data: st.DataObject) -> None:
        wire = value.to_json()
        assert validator(name).is_valid(wire)
        if wire:
            key = data.draw(st.sampled_from(sorted(wire)))
            change: JSON = data.draw(st.sampled_from([None, 7, "word", [], {}, [7], "absent"]))
            broken = {k: v for k, v in wire.items() if k != key} | (
                {} if change == "absent" else {key: change}
            )
            # Rules over several fields (one id for one call, say) and text that is no base64 are the reader's alone.
            if not validator(name).is_valid(broken):
                assert not reads(name, broken), (name, broken)
            elif key != "opaque" and name not in ("Interrupt", "InterruptRecord"):
                assert reads(name, broken), (name, broken)

    check()


@given(value=make.told)
def test_outcomes_fit_their_schemas(value: outcomes.Told) -> None:
    assert validator(type(value).__name__).is_valid(value.to_json())


def test_optional_is_absent_not_null() -> None:
    check = validator("Interrupt")
    base = {"kind": {"type": "custom"}, "payload": None, "reason": "custom"}
    assert check.is_valid(base)
    assert check.is_valid(base | {"expires_in_ms": None})
    for name in ("message", "action", "call_id", "offers", "metadata", "pending_handle"):
        assert not check.is_valid(base | {name: None})
        assert not reads("Interrupt", base | {name: None})


def test_p10_other_words_tags_and_fields_fit() -> None:
    newer = {
        "kind": {"type": "quota_wait"},
        "payload": 1,
        "reason": "x",
        "offers": ["delegate"],
        "zz": [None],
    }
    assert validator("Interrupt").is_valid(newer)
    assert reads("Interrupt", newer)


def test_the_reserved_names_of_version_1_are_in_the_schema() -> None:
    reserved = (
        "payload traceparent agent build key_id policy policy_version priority epoch protocol_ids requested_by "
        "digest_version"
    )
    assert set(reserved.split()) <= schema_for("Interrupt")["properties"].keys()
