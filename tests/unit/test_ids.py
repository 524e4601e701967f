"""Ids carry their session's bits, and those of interrupts can be computed before the pause."""

from typing import Any

import pytest
from hypothesis import given

from broker.core.ids import bits_of, interrupt_id, new_nonce, new_run_id, session_hash
from broker.core.limits import check_id

from . import strategies as make

POINT: dict[str, Any] = {
    "namespace": "airline",
    "session": "s_1",
    "run_id": "run_x",
    "seq": 1,
    "agent_path": (),
    "call_key": "c1",
    "kind_type": "approval_pending",
    "content_digest": "1:abc",
}


@given(session=make.ids)
def test_every_id_of_ours_leads_to_its_session_and_is_a_valid_id(session: str) -> None:
    made = [
        new_run_id(session, namespace="n"),
        new_run_id(session, namespace="n", key="k"),
        interrupt_id(**POINT | {"session": session}),
    ]
    for one in made:
        assert bits_of(one) == session_hash(session)
        assert check_id("id", one) == one


@pytest.mark.parametrize(
    "foreign", ["", "tu_81", "run_", "int_00", "run_zzzz" + "0" * 26, "RUN_0000" + "0" * 26]
)
def test_foreign_ids_carry_nothing(foreign: str) -> None:
    assert bits_of(foreign) is None


def test_a_start_with_a_key_repeats_and_one_without_does_not() -> None:
    assert new_run_id("s", namespace="n", key="k") == new_run_id("s", namespace="n", key="k")
    others = [("s", "n", "k2"), ("s2", "n", "k"), ("s", "n2", "k")]
    made = {new_run_id(session, namespace=ns, key=key) for session, ns, key in [("s", "n", "k"), *others]}
    assert len(made) == 4
    assert new_run_id("s", namespace="n") != new_run_id("s", namespace="n")


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "other"},
        {"session": "s_2"},
        {"run_id": "run_y"},
        {"seq": 2},
        {"agent_path": ("planner",)},
        {"call_key": "c2"},
        {"kind_type": "custom"},
        {"content_digest": "1:abd"},
        {"agent_path": ("c1",), "call_key": ""},
    ],
)
def test_rule_8_an_interrupt_id_covers_its_point_and_its_content(other: dict[str, Any]) -> None:
    assert interrupt_id(**POINT) == interrupt_id(**POINT)
    assert interrupt_id(**POINT) != interrupt_id(**POINT | other)


def test_nonces_differ() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100
    assert len(new_nonce()) == 16
