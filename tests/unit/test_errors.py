"""One table from code to HTTP and exit code, and sentences a person can act on."""

import copy
import pickle

import pytest

from broker import errors
from broker.core import outcomes
from broker.core.durability import Durability

EXAMPLES = [
    errors.InvalidInput("queue", "is empty", "a name"),
    errors.UnknownId("run", "run_x"),
    errors.Refused(outcomes.Conflict(reason="another point")),
    errors.AlreadyLeased("run_x", "worker-1"),
    errors.StaleLease("run_x"),
    errors.JournalMismatch("run_x", "call_1", "1:aa", "1:bb"),
    errors.JournalFull("run_x", 10_000, 123_456),
    errors.RosterMismatch("run_x", "call_1", "refund"),
    errors.BuildMismatch("run_x", "langgraph 1.2 of support", "langgraph 1.3 of support"),
    errors.UnsupportedVersion("langgraph", "0.6", ">=1.2,<2", "The adapter of LangGraph"),
    errors.CallFailed("refund", "rejected", "over budget."),
    errors.NotACall(),
    errors.Corrupt("{n:0.0}:run:r", "it has only 0 bytes"),
    errors.WrongNamespace("airline", "has 16 partitions", "the number it was created with"),
    errors.Unavailable("no reply in 5 s", unsure=True),
    errors.NotPermitted("EVAL on {n:0.0}:verdict:i"),
    errors.Untrusted("token", "it has expired"),
    errors.UnsuitableServer("maxmemory-policy is allkeys-lru", "Set it to noeviction"),
    errors.NoServer(("install 'interrupt-broker[embedded]'", "give a URL")),
    errors.MissingExtra("schema", "A response schema"),
    errors.OutOfMemory("maxmemory reached"),
    errors.WaitTimeout("int_x", 2.5),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_has_a_code_a_sentence_and_survives_a_copy(error: errors.BrokerError) -> None:
    known = {**errors.OUTCOME_CODES, **errors.ERROR_CODES}
    if not isinstance(error, errors.Refused):
        assert (error.http, error.exit_code) == known[error.code]
    assert str(error).endswith(".")
    assert "{" not in str(error).replace("{n:0.0}", "")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - our own bytes
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.code, again.http, again.exit_code) == (error.code, error.http, error.exit_code)


def test_every_kind_of_error_has_an_example_here() -> None:
    ours = {kind for kind in errors.BrokerError.__subclasses__() if kind.__module__ == errors.__name__}
    assert {type(error) for error in EXAMPLES} == ours


def test_a_refusal_carries_its_outcome_and_its_numbers() -> None:
    refused = errors.Refused(outcomes.Full(reason="maxmemory"))
    assert (refused.code, refused.http, refused.exit_code) == ("full", 507, 29)


def test_an_error_says_whether_a_write_may_have_happened() -> None:
    assert "may have happened" in str(errors.Unavailable("cut", unsure=True))
    assert "nothing was written" in str(errors.Unavailable("no route"))


def test_faults_inside_others_are_named_from_the_outside() -> None:
    inner = errors.InvalidInput("[3].a", "is NaN", "a number")
    assert inner.inside("payload").inside("interrupts[1]").field == "interrupts[1].payload[3].a"
    assert errors.InvalidInput("", "is null", "a value").inside("kind").field == "kind"


def test_every_outcome_has_a_code_of_the_table_and_json_that_says_it() -> None:
    told = {kind.code: kind for kind in outcomes.Told.__subclasses__()}
    assert told.keys() == errors.OUTCOME_CODES.keys()
    assert {code for code, kind in told.items() if kind.ok} == {"accepted", "replayed", "parked"}
    assert {code for code, codes in errors.OUTCOME_CODES.items() if codes.exit_code == 0} == {
        "accepted",
        "replayed",
        "parked",
    }


def test_outcomes_as_json() -> None:
    assert outcomes.Accepted(run_id="r").to_json() == {
        "code": "accepted",
        "run_id": "r",
        "durability": "memory",
    }
    missed = outcomes.NotDurable(wanted=Durability.replicated(2))
    assert missed.to_json() == {"code": "not_durable", "wanted": "replicated(2)", "reached": "memory"}
    assert outcomes.AlreadyDecided().to_json() == {"code": "already_decided"}
