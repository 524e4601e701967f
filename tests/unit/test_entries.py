import base64
from datetime import UTC, datetime

import msgpack
import pytest

from broker.core.answers import Answer, Approve, Cancel, Complete, Principal, Reject, Respond
from broker.core.entries import TOKEN, Failure, Result, mark_token, plain, read_token, step_digest
from broker.core.models import Action, Interrupt
from broker.core.records import InterruptRecord, Resolution
from broker.core.states import Settlement
from broker.errors import InvalidInput

ACTION = Action(tool="pay", arguments={})
APPROVAL = Interrupt.approval(ACTION, "c1")
JOB = Interrupt.completion(ACTION, "c1")
DOUBT = Interrupt.doubt(ACTION, "c1", 1)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def ended(
    asked: Interrupt, state: Settlement, answer: Answer | None = None, reason: str | None = None
) -> Result:
    """The result of a call whose question ended so."""
    by = Principal(id="ann")
    resolution = Resolution(
        interrupt_id="i", state=state, answer=answer, by=by, at=NOW, op="op", reason=reason
    )
    record = InterruptRecord(
        id="i", run_id="r", session_id="s", seq=1, queue="q", agent="a", state=state, opened_at=NOW, interrupt=asked,
        digest="1:x", resolution=resolution,
    )  # fmt: skip
    return Result.of(record)


NOT_RUN, MAYBE = "It was not run.", "It was begun before, and may have run."
ENDS: list[tuple[Interrupt, Settlement, Answer | None, str]] = [
    (
        APPROVAL,
        Settlement.RESOLVED,
        Reject(reason="no"),
        f"Error (rejected): Not approved by ann: no. {NOT_RUN}",
    ),
    (APPROVAL, Settlement.EXPIRED, None, f"Error (expired): Nobody answered in time. {NOT_RUN}"),
    (APPROVAL, Settlement.CANCELLED, Cancel(), f"Error (cancelled): Given up by ann. {NOT_RUN}"),
    (APPROVAL, Settlement.WITHDRAWN, None, f"Error (withdrawn): Taken back by ann. {NOT_RUN}"),
    (APPROVAL, Settlement.SUPERSEDED, None, f"Error (superseded): Another answer took its place. {NOT_RUN}"),
    (APPROVAL, Settlement.RESOLVED, Respond(payload=None), "null"),
    (JOB, Settlement.RESOLVED, Complete(value=[1]), "[1]"),
    (JOB, Settlement.EXPIRED, None, "Error (expired): Nobody answered in time. It was started."),
    (DOUBT, Settlement.EXPIRED, None, f"Error (expired): Nobody answered in time. {MAYBE}"),
    (DOUBT, Settlement.RESOLVED, Approve(), f"Error (unanswered): Ended by ann. {MAYBE}"),
]


@pytest.mark.parametrize(("asked", "state", "answer", "said"), ENDS)
def test_each_end_is_said_as_what_it_is(
    asked: Interrupt, state: Settlement, answer: Answer | None, said: str
) -> None:
    assert ended(asked, state, answer).message() == said


def test_an_open_question_is_no_result() -> None:
    record = InterruptRecord(
        id="i", run_id="r", session_id="s", seq=1, queue="q", agent="a", state=Settlement.OPEN, opened_at=NOW,
        digest="1:x",
    )  # fmt: skip
    with pytest.raises(InvalidInput):
        Result.of(record)


def test_a_failure_without_words_is_its_kind() -> None:
    assert Result(failure=Failure.of(KeyError())).message() == "Error: KeyError"


def test_text_is_told_as_it_is_and_all_else_as_json() -> None:
    said = [Result(value=value).message() for value in ("ü", {"ü": 1}, None, [1.5])]
    assert said == ["ü", '{"ü": 1}', "null", "[1.5]"]


def test_a_token_names_its_call_and_cannot_be_guessed() -> None:
    tokens = {mark_token("s", "r", "c1") for _ in range(50)}
    assert len(tokens) == 50
    assert {read_token(token) for token in tokens} == {("s", "r", "c1")}


def packed(*parts: object) -> str:
    return TOKEN + base64.urlsafe_b64encode(msgpack.packb(parts)).decode().rstrip("=")


BROKEN = [
    packed("s", "r", "c"),
    packed(1, "r", "c", b"x" * 16),
    packed("s", "r", "c", b"x"),
    packed("s", "r", "c", 7),
]


@pytest.mark.parametrize("wrong", ["", TOKEN, "tok_!", "tok_AAAA", *BROKEN])
def test_what_is_no_token_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        read_token(wrong)
    assert fault.value.field == "token"


def test_a_step_is_known_by_name_and_arguments() -> None:
    def step(a: int) -> int:
        return a

    digests = [step_digest(step, (1,), {}), step_digest(step, (2,), {}), step_digest(step, (), {"a": 1})]
    assert len(set(digests)) == 3
    assert step_digest(step, (1.0,), {}) == digests[0]
    assert step_digest(step, ({"b", "a"},), {}) == step_digest(step, ({"a", "b"},), {})


def test_arguments_without_a_json_form_are_told_apart_by_type() -> None:
    class One: ...

    class Two: ...

    assert step_digest(plain, (One(),), {}) == step_digest(plain, (One(),), {})
    assert step_digest(plain, (One(),), {}) != step_digest(plain, (Two(),), {})
    assert step_digest(plain, (float("nan"),), {}) == step_digest(plain, (float("nan"),), {})


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(InvalidInput):
        plain(object())
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidInput):
        plain(loop)
