"""Our verdicts on AG-UI streams beside those of `ag-ui-validate`, a validator of other people.

It follows the concept pages of 0.x, we the frozen specification 1.0. Each rule that only one side has, or holds for
another weight, stands below with what the specification says; but for those, both give the same verdict on every
stream: on its own examples, on ours, and on streams that Hypothesis makes and spoils.
"""

import json
from importlib.resources import files
from typing import Any, Final

import ag_ui_validate
import pytest
from hypothesis import given, settings

from broker.interop.agui.rules import Level, Rule, Violation
from broker.interop.agui.validator import StreamValidator, check_stream
from tests.seed_systems.agui.spoiling import Spoilt, spoilt, valid
from tests.seed_systems.agui.streams import BROKEN, VALID, Stream

THEIRS_ALONE: Final[dict[str, str]] = {
    "AGUI001": "lifecycle: a stream may begin with RUN_ERROR, for a run that fails before it begins.",
    "AGUI005": "lifecycle: a producer may send RUN_ERROR after RUN_FINISHED; it reports a late failure.",
    "AGUI104": "text messages: a closed message is not sealed, and may be opened again under its id.",
    "AGUI204": "tool calls: the protocol carries arguments as text and does not validate them.",
    "AGUI205": "tool calls: a closed call may be opened again under its id.",
    "AGUI207": "tool calls: a result may answer a call of an earlier run, as after an interrupt.",
    "AGUI302": "snapshots: a patch that does not apply is warned of, and the run goes on.",
    "AGUI303": "snapshots: an operation that RFC 6902 does not define is dropped from its patch.",
    "AGUI503": "processing: an event of an unknown type is dropped, and must not abort the run.",
}
"""Errors of theirs that the specification does not hold against a stream, and where it says so."""
FOLLOWED_BY: Final = {"AGUI104": {"AGUI101", "AGUI102"}, "AGUI205": {"AGUI201", "AGUI202"}}
"""What they say next of an item that they did not let be opened again."""

OURS_ALONE: Final[dict[Rule, str]] = {
    Rule.CONTRADICTION: "subagents: interrupt ids must not stand on a success; outcomes are closed.",
    Rule.RUN_REUSED: "event model: a run id must not be reused for another run of its thread.",
    Rule.PENDING_CALLS: "tool calls: pendingToolCallIds must be exactly the unanswered calls.",
    Rule.INTERRUPT_REUSED: "interrupts: each interrupt's id must be unique within the run.",
    Rule.CHUNK_CONFLICT: "streaming: a conflicting repeat on a chunk is a violation.",
    Rule.CHUNK_AMBIGUOUS: "streaming: a continuation that could be several lanes' must be rejected.",
    Rule.OWNER: "subagents: a consumer must reject a continuation whose tag disagrees; theirs is a warning.",
    Rule.SUBAGENT_REUSED: "subagents: an id that has finished in this run, suspended or not, starts no more in it.",
    Rule.SUBAGENT_LATE: "subagents: an invocation is announced before any event attributed to it.",
    Rule.SUBAGENT_PARENT: "subagents: a parent that is named must have been announced; theirs is a warning.",
    Rule.INTERRUPT_OWNER: "subagents: interruptIds name what the invocation raised; an interrupt's tag is its owner.",
}
"""Errors of ours that they have not, or have as a warning, and where the specification has them."""


def ours_alone(one: Violation) -> str | None:
    """Why they do not see an error of ours, where they do not."""
    if one.rule in {Rule.ALREADY_OPEN, Rule.NOT_OPEN, Rule.LEFT_OPEN} and any(
        kind in one.text for kind in ("reasoning", "step")
    ):
        return "reasoning, lifecycle: spans, reasoning messages and steps nest as messages do."
    if one.rule is Rule.MALFORMED and "." in one.field:
        return "the schema describes what stands inside a field as well."
    if one.rule is Rule.MALFORMED and one.field in {"rawEvent", "result", "timestamp"}:
        return (
            "event model: an optional field, of any JSON too, is left out rather than null; times are whole."
        )
    return OURS_ALONE.get(one.rule)


def theirs(stream: Stream) -> set[str]:
    """The errors that they see."""
    validator = ag_ui_validate.create_validator()
    for one in stream:
        validator.feed(one)
    validator.finalize()
    report = validator.report()
    assert report.internal_errors == []
    return {one.rule for one in report.diagnostics if one.severity == "error"}


def ours(stream: Stream) -> list[Violation]:
    """The errors that we see."""
    validator = StreamValidator()
    for one in stream:
        validator.feed(one)
    validator.close()
    return [one for one in validator.violations if one.rule.level is Level.ERROR]


def examples() -> dict[str, list[str]]:
    """The streams that come with their package, as text."""
    root = files(ag_ui_validate) / "spec" / "fixtures"
    found = {
        path.name: path.read_text() for path in (root / "valid").iterdir() if path.name.endswith(".jsonl")
    }
    for folder in (root / "invalid").iterdir():
        path = folder / "stream.jsonl"
        if path.is_file():
            found[folder.name] = path.read_text()
    return {
        name: [line for line in text.splitlines() if line.strip()] for name, text in sorted(found.items())
    }


EXAMPLES: Final = examples()
STREAMS: Final[dict[str, Stream]] = {
    **VALID,
    **{rule.word: stream for rule, (_, stream) in BROKEN.items()},
    **{
        name: [json.loads(line) for line in lines]
        for name, lines in EXAMPLES.items()
        if "AGUI502" not in name
    },
}


def unexplained(stream: Stream) -> list[str]:
    """Where the verdicts differ: the errors that only one side sees, and that nothing explains."""
    seen, found = theirs(stream), ours(stream)
    if not found:
        alone = seen & THEIRS_ALONE.keys()
        return sorted(seen - alone - {rule for one in alone for rule in FOLLOWED_BY.get(one, ())})
    return [] if seen else [str(one) for one in found if ours_alone(one) is None]


@pytest.mark.parametrize("name", STREAMS)
def test_both_give_the_same_verdict_but_for_what_the_specification_explains(name: str) -> None:
    assert unexplained(STREAMS[name]) == []


def test_what_is_no_json_is_an_error_for_both() -> None:
    (lines,) = (lines for name, lines in EXAMPLES.items() if "AGUI502" in name)
    assert [one.rule for one in check_stream(lines).violations] == [Rule.FRAMING]
    assert theirs(lines) == {"AGUI502"}


def test_every_explanation_is_needed() -> None:
    """Each rule of the lists makes a difference on some stream: none is there to hide one."""
    verdicts = [(theirs(stream), ours(stream)) for stream in STREAMS.values()]
    assert THEIRS_ALONE.keys() <= {rule for seen, found in verdicts if not found for rule in seen}
    assert OURS_ALONE.keys() <= {one.rule for seen, found in verdicts if not seen for one in found}


@settings(max_examples=150)
@given(valid())
def test_both_take_streams_that_conform(stream: Stream) -> None:
    assert ours(stream) == []
    assert theirs(stream) <= THEIRS_ALONE.keys()


@settings(max_examples=300)
@given(spoilt())
def test_both_see_what_was_spoilt(made: Spoilt) -> None:
    assert unexplained(made.stream) == []


@settings(max_examples=300)
@given(spoilt())
def test_a_single_fault_is_named(made: Spoilt) -> None:
    validator = StreamValidator()
    found: list[Any] = [one.rule for event in made.stream for one in validator.feed(event)]
    found += [one.rule for one in validator.close()]
    assert made.rule in found
    assert validator.conforms is (made.rule.level is Level.WARNING)
