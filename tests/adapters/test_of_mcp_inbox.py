"""MCP: the broker as a server, through which an authorised person's client lists, shows and answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from broker import (
    Action,
    AsyncBroker,
    Interrupt,
    Principal,
    Settlement,
)
from broker.adapters.mcp import approvals


@asynccontextmanager
async def signed_in(
    broker: AsyncBroker, subject: str | None, *groups: str, **options: Any
) -> AsyncIterator[Any]:
    """The tools of the broker's server, called over a connection that was authenticated for somebody."""
    user = None
    if subject is not None:
        token = AccessToken(
            token="t", client_id="chat", scopes=[], subject=subject, claims={"groups": list(groups)}
        )
        user = AuthenticatedUser(token)
    reset = auth_context_var.set(user)
    try:
        async with mcp.Client(approvals(broker, **options)) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            yield call
    finally:
        auth_context_var.reset(reset)


async def ask(broker: AsyncBroker, *reviewers: str) -> str:
    question = Interrupt.approval(
        Action(tool="pay", arguments={"amount": 10}), "c1", reviewers=reviewers, message="Pay 10?"
    )
    outcome = await broker.suspend("payer", question, session="-".join(("s", *reviewers)))
    return outcome.interrupt_ids[0]


async def test_a_person_s_client_lists_shows_and_answers(broker: AsyncBroker) -> None:
    mine, ours, theirs = await ask(broker), await ask(broker, "refunds"), await ask(broker, "grace")
    async with signed_in(broker, "ada", "refunds") as call:
        listed = await call("list_interrupts")
        assert [one["id"] for one in listed["items"]] == [mine, ours]
        shown = await call("show_interrupt", interrupt_id=ours)
        assert (shown["arguments"], shown["offers"][0]) == ({"amount": 10}, "approve")
        wrong = await call("answer_interrupt", interrupt_id=ours, digest="0" * 64, answer={"kind": "approve"})
        assert not wrong["ok"]
        said = {"interrupt_id": ours, "digest": shown["digest"], "answer": {"kind": "approve"}}
        first, again = [await call("answer_interrupt", **said) for _ in range(2)]
        assert (first["code"], again["code"]) == ("accepted", "replayed")
        other = await call("answer_interrupt", **said | {"answer": {"kind": "reject", "reason": "no"}})
        assert other["code"] == "already_decided"
        for tool, more in (("show_interrupt", {}), ("answer_interrupt", said | {"interrupt_id": theirs})):
            assert (await call(tool, **{"interrupt_id": theirs} | more))["code"] == "unknown"
        assert (await call("answer_interrupt", **said | {"answer": {"kind": "reject"}}))["code"] == "invalid"
    resolution = (await broker.inbox.get(ours)).resolution
    assert resolution is not None
    assert resolution.by is not None
    assert (resolution.by.id, resolution.by.verified) == ("ada", True)


async def test_nobody_may_see_or_answer_anything(broker: AsyncBroker) -> None:
    mine = await ask(broker)
    async with signed_in(broker, None) as call:
        for tool, given in (
            ("list_interrupts", {}),
            ("show_interrupt", {"interrupt_id": mine}),
            ("answer_interrupt", {"interrupt_id": mine, "digest": "", "answer": {"kind": "approve"}}),
        ):
            assert (await call(tool, **given))["code"] == "not_allowed"
    async with signed_in(broker, None, who=lambda _: Principal.local("ada")) as call:
        assert [one["id"] for one in (await call("list_interrupts"))["items"]] == [mine]
    assert (await broker.inbox.get(mine)).state is Settlement.OPEN
