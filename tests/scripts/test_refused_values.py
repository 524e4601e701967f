"""P12: values, pauses and answers that cannot be change nothing; F16: a payload against its response schema.

Through the front door, with every key compared before and after (see `refusing.refused`).
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker import AsyncBroker
from broker.core.answers import Approve, Complete, Edit, Principal, Respond
from broker.core.models import Action, Interrupt, InterruptState, PendingToolCall
from broker.testing import RunningServer

from .refusing import CANARY, SECRET, Setting, refused, suspended
from .world import approval

Use = Callable[[Setting, Any], Awaitable[object]]

# values -------------------------------------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    value: Any = CANARY
    for _ in range(levels):
        value = [value]
    return value


BAD_JSON: dict[str, tuple[Any, str, str]] = {
    "NaN": ({"a": [1, float("nan")]}, ".a[1]", "NaN"),
    "infinity": (float("-inf"), "", "infinite"),
    "beyond 64 bits": ({"n": 2**64}, ".n", "beyond 64 bits"),
    "below 64 bits": ({"n": -(2**63) - 1}, ".n", "beyond 64 bits"),
    "too deep": (deep(65), "", "too deep"),
    "half a surrogate pair": ({"t": f"{CANARY}\ud800"}, ".t", "surrogate"),
    "a key that is no text": ({1: CANARY}, ".1", "key"),
    "bytes": ({"b": CANARY.encode()}, ".b", "bytes"),
    "an object": ({"o": object()}, ".o", "object"),
    "a set": ({"s": {1}}, ".s", "set"),
}

JSON_USES: dict[str, tuple[str, Use]] = {
    "start input": ("input", lambda s, x: s.broker.start("airline", x, session="s")),
    "start metadata": ("metadata", lambda s, x: s.broker.start("airline", session="s", metadata={"m": x})),
    "interrupt payload": ("payload", lambda s, x: later(lambda: suspended(s, Interrupt.question(x)))),
    "interrupt metadata": ("metadata", lambda s, x: later(lambda: suspended(s, approval(metadata={"m": x})))),
    "action arguments": (
        "arguments",
        lambda s, x: later(lambda: suspended(s, Interrupt.approval(Action(tool="t", arguments=x), "c9"))),
    ),
    "context": (
        "context_snapshot",
        lambda s, x: later(lambda: suspended(s, approval("c9"), state=InterruptState(context_snapshot=[x]))),
    ),
    "answer value": ("value", lambda s, x: later(lambda: s.broker.complete(s.job, x))),
    "answer payload": (
        "payload",
        lambda s, x: later(lambda: s.broker.inbox.answer(s.form, Respond(payload=x))),
    ),
    "answer edit": (
        "arguments",
        lambda s, x: later(lambda: s.broker.inbox.answer(s.gate, Edit(arguments=x))),
    ),
    "claims": (
        "claims",
        lambda s, x: later(lambda: s.broker.cancel(s.gate, by=Principal(id="x", claims={"m": x}))),
    ),
    "result": ("result", lambda s, x: later(lambda: s.run.finish(x))),
}


async def later(make: Callable[[], Awaitable[object]]) -> object:
    """So that what is raised while the value is made is raised where it is awaited."""
    return await make()


@pytest.mark.parametrize("use", JSON_USES.values(), ids=JSON_USES)
async def test_a_value_that_is_no_json_is_refused_with_its_path(
    setting: Setting, use: tuple[str, Use]
) -> None:
    name, call = use
    for value, path, problem in BAD_JSON.values():
        code, field, said = await refused(setting, call(setting, value))
        assert (code, problem in said) == ("invalid", True), said
        assert name in field
        assert field.endswith(path) or "too deep" in said


async def test_what_is_too_large_is_refused_by_its_field(setting: Setting) -> None:
    """State 4 MiB, records 1 MiB, a lease still held and usable afterwards."""
    big, run = CANARY * 100_000, setting.run
    huge = InterruptState(system_prompt=CANARY * 350_000)
    for call in (
        lambda: suspended(setting, approval("c9"), state=huge),
        lambda: suspended(setting, Interrupt.question(big)),
        lambda: setting.broker.start("airline", big, session="s"),
        lambda: setting.broker.complete(setting.job, big),
        lambda: run.finish(big),
    ):
        code, field, said = await refused(setting, later(call))
        assert (code, "bytes" in said) == ("invalid", True), said
        assert field
    assert (await run.suspend(approval("c9"))).ok


@pytest.mark.parametrize("count", [0, 65])
async def test_a_pause_asks_at_least_one_and_at_most_sixty_four(setting: Setting, count: int) -> None:
    questions = [approval(f"c{n}") for n in range(count)]
    code, field, _said = await refused(setting, suspended(setting, *questions))
    assert (code, field) == ("invalid", "interrupts")


async def test_sixty_four_questions_and_a_full_state_are_accepted(setting: Setting) -> None:
    """The limits themselves are allowed."""
    state = InterruptState(system_prompt="x" * (4 * 1024 * 1024 - 50_000))
    told = await setting.run.suspend(*(approval(f"call-{n}") for n in range(64)), state=state)
    assert len(told.interrupt_ids) == 64


PAUSES: dict[str, tuple[Callable[[], tuple[list[Interrupt], InterruptState | None]], str]] = {
    "one call asked about twice": (lambda: ([approval("c1"), approval("c1", 400)], None), "call_id"),
    "an expiry in the past": (
        lambda: ([approval(expires_at=datetime(2020, 1, 1, tzinfo=UTC))], None),
        "expires_at",
    ),
    "an expiry of nothing": (lambda: ([approval(expires_in=timedelta())], None), "expires_in"),
    "an expiry before now": (lambda: ([approval(expires_in=timedelta(seconds=-5))], None), "expires_in"),
    "two expiries": (
        lambda: ([approval(expires_in=timedelta(1), expires_at=datetime(2100, 1, 1, tzinfo=UTC))], None),
        "expires_at",
    ),
    "a pending call that nobody asks about": (
        lambda: ([approval("c1")], pending(("c1", "refund"), ("c2", "refund"))),
        "pending_tool_calls",
    ),
    "a question about no pending call": (
        lambda: ([approval("c1"), approval("c2")], pending(("c1", "refund"))),
        "pending_tool_calls",
    ),
    "another tool than the pending call's": (
        lambda: ([approval("c1")], pending(("c1", "pay"))),
        "pending_tool_calls",
    ),
    "a pending call twice": (
        lambda: ([approval("c1")], pending(("c1", "refund"), ("c1", "refund"))),
        "pending_tool_calls",
    ),
    "a schema that is none": (
        lambda: ([Interrupt.question(1, schema={"type": "nonsense"})], None),
        "response_schema",
    ),
    "a schema elsewhere": (
        lambda: ([Interrupt.question(1, schema={"$ref": "https://example.invalid/s.json"})], None),
        "response_schema",
    ),
    "a tool-use id that is another call's": (
        lambda: ([approval("c1").model_copy(update={"call_id": "c2"})], pending(("c1", "refund"))),
        "pending_tool_calls",
    ),
}


def pending(*calls: tuple[str, str]) -> InterruptState:
    return InterruptState(
        pending_tool_calls=tuple(
            PendingToolCall(tool_call_id=call, tool_name=tool, arguments={"amount": 40})
            for call, tool in calls
        )
    )


@pytest.mark.parametrize("pause", PAUSES.values(), ids=PAUSES)
async def test_a_pause_that_does_not_hold_together_is_refused(
    setting: Setting, pause: tuple[Callable[[], tuple[list[Interrupt], InterruptState | None]], str]
) -> None:
    make, name = pause

    async def call() -> object:
        questions, state = make()
        return await setting.run.suspend(*questions, state=state)

    code, field, said = await refused(setting, call())
    assert (code, name in field) == ("invalid", True), said
    assert (await setting.run.suspend(approval("c1"))).ok


# answers ------------------------------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Callable[[Setting], Awaitable[object]], str]] = {
    "of the wrong kind": (lambda s: s.broker.inbox.answer(s.gate, Respond(payload=CANARY)), "answer"),
    "a completion of a gate": (lambda s: s.broker.complete(s.gate, CANARY), "answer"),
    "an approval of a job": (lambda s: s.broker.inbox.answer(s.job, Approve(note=CANARY)), "answer"),
    "an edit where none is offered": (
        lambda s: s.broker.inbox.answer(s.gate, Edit(arguments=SECRET)),
        "answer",
    ),
    "another digest seen": (lambda s: s.broker.inbox.answer(s.gate, Approve(), seen="1:" + "0" * 64), "seen"),
    "the digest of another question": (
        lambda s: s.broker.inbox.answer(s.gate, Approve(), seen=approval().content_digest),
        "seen",
    ),
    "a payload beside its schema": (
        lambda s: s.broker.inbox.answer(s.form, Respond(payload={"items": [1, CANARY]})),
        "payload.items[1]",
    ),
    "a payload without what it must have": (
        lambda s: s.broker.inbox.answer(s.form, Respond(payload={"note": "x"})),
        "payload",
    ),
    "a payload of another type": (
        lambda s: s.broker.inbox.answer(s.form, Respond(payload=CANARY)),
        "payload",
    ),
    "by call, of the wrong kind": (
        lambda s: s.broker.inbox.answer_call("s_1", "c1", Complete(value=CANARY)),
        "answer",
    ),
    "a run without its sequence": (
        lambda s: s.broker.inbox.answer_call("s_1", "c1", Approve(), run_id=s.waiting),
        "seq",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(
    setting: Setting, answer: tuple[Callable[[Setting], Awaitable[object]], str]
) -> None:
    """F16 with the failing path named; rule 8 for `seen`."""
    call, name = answer
    code, field, said = await refused(setting, call(setting))
    assert (code, field.startswith(name)) == ("invalid", True), said
    for one in (setting.gate, setting.form, setting.job):
        assert (await setting.broker.inbox.get(one)).state == "open"


async def test_nobody_answers_without_a_name(server: RunningServer, setting: Setting) -> None:
    async with AsyncBroker(server.url, namespace=setting.broker.namespace) as nobody:
        code, field, _said = await refused(setting, nobody.inbox.answer(setting.gate, Approve()))
    assert (code, field) == ("invalid", "by")


@pytest.mark.parametrize("priority", [1001, -1001])
async def test_a_priority_out_of_range_is_refused(setting: Setting, priority: int) -> None:
    code, field, _said = await refused(
        setting, setting.broker.start("airline", session="s", priority=priority)
    )
    assert (code, field) == ("invalid", "priority")


@pytest.mark.parametrize("limit", [0, 501, -1])
async def test_a_page_is_bounded(setting: Setting, limit: int) -> None:
    code, field, _said = await refused(setting, setting.broker.inbox.list(limit=limit))
    assert (code, field) == ("invalid", "limit")


@pytest.mark.parametrize("cursor", ["", "x", "1.5", "0.", ".0", "0.-1", "0.99999999999999999999", "9.0"])
async def test_a_cursor_of_ones_own_making_is_refused(setting: Setting, cursor: str) -> None:
    code, field, _said = await refused(setting, setting.broker.inbox.list(cursor=cursor))
    assert (code, field) == ("invalid", "cursor")
