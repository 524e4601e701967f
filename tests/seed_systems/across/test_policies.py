"""Policies of all four systems together, and what silence means."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    InvalidInput,
    Reject,
    Settlement,
    Worker,
    gated,
    tool,
)
from broker.interop.approval import Facts, asks, asks_any, escalated, gate, with_timeout
from tests.clients.asking import BEN, refund
from tests.clock import Clock

Connect = Callable[..., Any]
Serve = Callable[..., Worker]
Sweep = Callable[[], Awaitable[object]]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.row("X9")
async def test_X9_each_question_has_its_own_policy_and_none_approves_unasked(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """Off: `_EXPIRY`, or an `expire` of the prelude that does not look at the policy."""
    words = ["wait", "deny", "abandon", "approve"]
    ids = {}
    for word in words:
        asked = with_timeout(refund(), {"on_timeout": word, "after": 900})
        ids[word] = (await broker.suspend("a", asked, session=word)).interrupt_ids[0]
    clock.advance(timedelta(seconds=899))
    await sweep()
    assert {(await broker.inbox.get(one)).state for one in ids.values()} == {Settlement.OPEN}
    clock.advance(timedelta(seconds=1))
    await sweep()
    found = {word: await broker.inbox.get(one) for word, one in ids.items()}
    assert [found[word].state for word in words] == ["open", "expired", "expired", "resolved"]
    reasons = {word: one.resolution.reason for word, one in found.items() if one.resolution}
    assert (reasons["deny"], reasons["abandon"]) == ("deny", "cancel")
    approved = [word for word, one in found.items() if one.resolution and one.resolution.answer == Approve()]
    assert approved == ["approve"]


@pytest.mark.report("RA30")
@pytest.mark.row("X9")
async def test_X9_an_escalation_asks_the_next_one_and_in_the_end_says_no(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """Off: `escalated`, without which the first silence is the end."""
    policy = {
        "on_timeout": "escalate", "to": "lead", "after": 900,
        "then": {"on_timeout": "escalate", "to": "boss", "after": 600},
    }  # fmt: skip

    async def attempt(run_id: str) -> Any:
        async with broker.take(run_id) as run:
            if run.seq == 0:
                return await run.suspend(with_timeout(refund(reviewers=("team",)), policy))
            if again := escalated(run.interrupts):
                return await run.suspend(*again)
            return await run.finish(
                [str(one.answer.kind if one.answer else one.reason) for one in run.resolutions]
            )

    async def asked_of() -> list[tuple[str, ...]]:
        return [one.interrupt.reviewers for one in (await broker.inbox.list()).items]

    silent = (await broker.start("a", session="s")).run_id
    heard = (await broker.start("a", session="t")).run_id
    await attempt(silent)
    await attempt(heard)
    seen = [await asked_of()]
    for seconds in (900, 600, 600):
        clock.advance(timedelta(seconds=seconds))
        await sweep()
        for run_id in await broker.runs.ready("agents"):
            await attempt(run_id)
        seen.append(await asked_of())
        if seconds == 900:
            (mine,) = [one for one in (await broker.inbox.list()).items if one.run_id == heard]
            await broker.inbox.answer(mine.id, Approve(), by=BEN)
    assert seen == [[("team",)] * 2, [("lead",)] * 2, [("boss",)], []]
    results = [(await broker.runs.get(one)).result for one in (silent, heard)]
    assert results == [["deny"], ["approve"]], "silence to the end is a no, never a yes"


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"on_timeout": "bogus", "after": 1}, "timeout.on_timeout"),
        ({"after": 1}, "timeout.on_timeout"),
        (None, "timeout.on_timeout"),
        ({"on_timeout": "deny"}, "timeout.after"),
        ({"on_timeout": "deny", "after": 0}, "timeout.after"),
        ({"on_timeout": "deny", "after": True}, "timeout.after"),
        ({"on_timeout": "deny", "after": 1e300}, "timeout.after"),
        ({"on_timeout": "escalate", "after": 1}, "timeout.to"),
        ({"on_timeout": "deny", "after": 1, "to": "lead"}, "timeout.to"),
        ({"on_timeout": "deny", "after": 1, "then": {}}, "timeout.then"),
        ({"on_timeout": "escalate", "after": 1, "to": "x", "then": {}}, "timeout.then.on_timeout"),
    ],
)
def test_a_policy_that_is_not_understood_is_refused(policy: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        with_timeout(refund(), policy)
    assert refused.value.field == field


POLICIES: list[tuple[Any, str]] = [
    ("never", "nnn"),
    ("always", "yyy"),
    ({"per_tool": ["shell"]}, "nny"),
    ({"mode": "enabled"}, "yyy"),
    ({"mode": "smart"}, "nny"),
    ({"mode": "bypassed"}, "nnn"),
    ({"gate": "always"}, "yyy"),
    ({"gate": "mutating_and_above"}, "nyy"),
    ({"gate": "destructive_only"}, "nny"),
    # What is not understood asks.
    ({"policy": "bogus"}, "yyy"),
    ("Never", "yyy"),
    ({"per_tool": "look"}, "yyy"),
    ({"per_tool": [1]}, "yyy"),
    ({"per_tool": [], "unless": "shell"}, "yyy"),
    ({"mode": "yolo"}, "yyy"),
    ({"mode": ["bypassed"]}, "yyy"),
    ({"mode": "bypassed", "but": "shell"}, "yyy"),
    ({"gate": "never"}, "yyy"),
    (None, "yyy"),
    (False, "yyy"),
    ([], "yyy"),
]
TOOLS = [
    Facts("look", effect="read_only"),
    Facts("note", effect="mutating"),
    Facts("shell", declared=True, effect="destructive"),
]


@pytest.mark.row("X13")
@pytest.mark.parametrize(("policy", "answers"), POLICIES, ids=repr)
def test_X13_what_a_policy_asks_about_and_the_unknown_asks(policy: Any, answers: str) -> None:
    assert "".join("ny"[asks(policy, one)] for one in TOOLS) == answers


@pytest.mark.row("X13")
def test_X13_together_whoever_asks_wins() -> None:
    for one, first in POLICIES:
        for other, second in POLICIES:
            together = ["ny"[asks_any([one, other], facts)] for facts in TOOLS]
            assert together == ["y" if "y" in pair else "n" for pair in zip(first, second, strict=True)]
    assert [asks_any([], facts) for facts in TOOLS] == [False, False, True]
    assert not asks({"mode": "smart"}, Facts("shell", declared=True, trusted=True))
    assert asks({"gate": "destructive_only"}, Facts("shell")), "an effect nobody declared is the worst"
    assert asks({"gate": "destructive_only"}, Facts("shell", effect="harmless"))


@pytest.mark.row("X13")
async def test_X13_calls_are_asked_about_by_all_policies_together(broker: AsyncBroker) -> None:
    ran: list[str] = []

    @tool()
    async def look() -> None:
        ran.append("look")

    @tool()
    async def note() -> None:
        ran.append("note")

    @gated
    async def shell() -> None:
        ran.append("shell")

    effects = {"look": "read_only", "note": "mutating", "shell": "destructive"}
    policies: list[Any] = ["never", {"mode": "smart"}, {"gate": "mutating_and_above"}]

    async def attempt(*given: Any) -> None:
        async with broker.take(run_id) as run:
            calls = [{"id": name, "name": name, "arguments": {}} for name in effects]
            await run.calls(calls, gate([look, note, shell], *given, effects=effects))
            await run.finish()

    run_id = (await broker.start("a", session="s")).run_id
    await attempt(*policies)
    asked = {one.interrupt.call_id: one.id for one in (await broker.inbox.list()).items}
    assert (set(asked), ran) == ({"note", "shell"}, ["look"])
    await broker.inbox.answer(asked["note"], Approve())
    await broker.inbox.answer(asked["shell"], Reject(reason="no"))
    await attempt("never")
    assert ran == ["look", "note"], "what was asked about stays gated"
