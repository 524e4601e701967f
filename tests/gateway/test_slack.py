"""Approvals in Slack (F45, F46), against a stand-in of its API that checks what Slack checks."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import Action, Approve, AsyncBroker, Edit, Interrupt, Principal, PrincipalKind, Reject, Settlement
from broker.core.answers import AnswerKind
from broker.gateway.slack import Slack, SlackSettings
from broker.testing import RunningServer, await_until

from .site import Site, serving
from .slack_site import SECRET, TOKEN, Workspace, workspace

ADA = Principal(id="ada", groups=("refunds",))
BOB = Principal(id="bob")
USERS = {"U1": ADA, "U2": BOB, "U3": Principal(id="robot", kind=PrincipalKind.AGENT)}
HOSTILE = "*bold* <!channel> <https://evil.example|Approve here> &amp; `code` <@U1>"


@dataclass
class Team:
    """A gateway, Slack, and the bot between them."""

    site: Site
    slack: Workspace

    @property
    def broker(self) -> AsyncBroker:
        return self.site.broker

    async def ask(self, session: str = "s", arguments: Any = None, **rest: Any) -> str:
        """An approval, once its card is there."""
        before = len(self.slack.messages)
        action = Action(tool="refund", arguments=arguments or {"amount": 12})
        asked = Interrupt.approval(
            action, "call-1", offers=(AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT), **rest
        )
        made = (await self.broker.suspend("airline", asked, session=session)).interrupt_ids[0]
        await await_until(lambda: len(self.slack.messages) > before)
        return made

    async def press(self, user: str, kind: str, **how: Any) -> int:
        return (await self.slack.press(self.site.url, user, self.slack.button(kind), **how)).status_code

    async def settled(self, one: str) -> Any:
        async def state() -> bool:
            return (await self.broker.inbox.get(one)).state is not Settlement.OPEN

        await await_until(state)
        return (await self.broker.inbox.get(one)).resolution

    async def says(self, text: str) -> None:
        """Once the channel shows that text."""
        await await_until(lambda: text in self.slack.shown(), what=f"{text!r} in the channel")


@asynccontextmanager
async def posting(bot: Slack) -> AsyncIterator[None]:
    task = asyncio.create_task(bot.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def settings(slack: Workspace, **rest: Any) -> SlackSettings:
    how: dict[str, Any] = {
        "token": TOKEN, "signing_secret": SECRET, "channel": "C1", "users": USERS, "api": slack.url, "team": "T1",
        "inbox": "https://inbox.example", "lease": timedelta(seconds=1), **rest,
    }  # fmt: skip
    return SlackSettings(**how)


@pytest.fixture
async def team(broker: AsyncBroker) -> AsyncGenerator[Team]:
    async with workspace() as slack:
        bot = Slack(broker, settings(slack))
        async with serving(broker, install=bot.install) as site, posting(bot):
            yield Team(site, slack)


async def test_F45_an_approval_is_decided_by_a_press_and_everyone_sees_it(team: Team) -> None:
    one = await team.ask()
    (shown,) = team.slack.messages.values()
    assert '{\n  "amount": 12\n}' in [block.get("text", {}).get("text") for block in shown["blocks"]]
    assert await team.press("U1", "approve") == 200
    how = await team.settled(one)
    assert (how.answer, how.by.id, how.by.verified) == (Approve(), "ada", True)
    await team.says("Approved by ada.")
    with pytest.raises(KeyError):
        team.slack.button("approve")
    assert team.slack.slowest < 3
    assert team.slack.whispers == []


async def test_F45_the_second_press_is_told_who_was_first(team: Team) -> None:
    await team.ask()
    button = team.slack.button("approve")
    assert await team.press("U1", "approve") == 200
    await team.says("Approved by ada.")
    # Bob's screen still shows the button.
    await team.slack.press(team.site.url, "U2", button)
    await await_until(lambda: team.slack.whispers)
    assert (
        team.slack.whispers == [("U2", "Approved already? No: nothing.")] or team.slack.whispers[0][0] == "U2"
    )


async def test_F45_two_press_at_once_and_one_counts(team: Team) -> None:
    one = await team.ask()
    button = team.slack.button("approve")
    await asyncio.gather(*(team.slack.press(team.site.url, user, button) for user in ("U1", "U2")))
    winner = (await team.settled(one)).by.id
    await team.says(f"Approved by {winner}.")


async def test_F45_a_decision_made_elsewhere_reaches_the_card(team: Team) -> None:
    one = await team.ask()
    await team.broker.inbox.answer(one, Reject(reason="too much"), by=BOB)
    await team.says("Rejected by bob: too much")


async def test_F45_a_reason_is_asked_for_in_a_form(team: Team) -> None:
    one = await team.ask()
    assert await team.press("U2", "reject") == 200
    await await_until(lambda: team.slack.views)
    response = await team.slack.submit(team.site.url, "U2", "not this customer")
    assert (response.status_code, response.content) == (200, b"")
    how = await team.settled(one)
    assert (how.answer, how.by.id) == (Reject(reason="not this customer"), "bob")
    await team.says("Rejected by bob: not this customer")


async def test_F45_arguments_are_edited_in_a_form_and_faults_are_told_in_it(team: Team) -> None:
    one = await team.ask()
    assert await team.press("U1", "edit") == 200
    await await_until(lambda: team.slack.views)
    assert json.loads(team.slack.views[0]["blocks"][1]["element"]["initial_value"]) == {"amount": 12}
    for wrong, told in (("{", "no JSON"), ("[1]", "JSON object")):
        response = await team.slack.submit(team.site.url, "U1", wrong)
        assert told in response.json()["errors"]["said"]
    assert (await team.broker.inbox.get(one)).state is Settlement.OPEN
    response = await team.slack.submit(team.site.url, "U1", '{"amount": 10}')
    assert response.content == b""
    assert (await team.settled(one)).answer == Edit(arguments={"amount": 10})
    await team.says("Approved by ada, with other arguments.")


@pytest.mark.parametrize("user", ["U9", "U3"])
async def test_F46_whoever_is_nobody_here_decides_nothing(team: Team, user: str) -> None:
    """An unknown user and an agent press: both are told so, and nothing is written."""
    one = await team.ask()
    for kind in ("approve", "reject", "edit"):
        assert await team.press(user, kind) == 200
    await await_until(lambda: len(team.slack.whispers) == 3)
    assert {who for who, _ in team.slack.whispers} == {user}
    assert all("not known here" in said for _, said in team.slack.whispers)
    assert team.slack.views == []
    assert (await team.broker.inbox.get(one)).state is Settlement.OPEN


@pytest.mark.parametrize(
    "how", [{"secret": "another"}, {"age": 302}, {"age": -330}, {"tamper": True}],
    ids=["forged", "old", "early", "tampered"],
)  # fmt: skip
async def test_F46_only_what_slack_has_signed_counts(team: Team, how: dict[str, Any]) -> None:
    one = await team.ask()
    assert await team.press("U1", "approve", **how) == 401
    assert (await team.broker.inbox.get(one)).state is Settlement.OPEN


@pytest.mark.parametrize("stamp", ["", "x", "١٢٣", "1e9", "-1"])
async def test_F46_headers_that_are_none(team: Team, stamp: str) -> None:
    async with team.site.client() as client:
        headers = {"x-slack-request-timestamp": stamp.encode(), "x-slack-signature": b"v0=\xff"}
        refused = await client.post("/v1/slack/interactive", content=b"payload={}", headers=headers)  # type: ignore[arg-type]
    assert refused.status_code == 401


async def test_F46_another_workspace_decides_nothing(team: Team) -> None:
    one = await team.ask()
    payload = {
        "type": "block_actions",
        "team": {"id": "T2"},
        "user": {"id": "U1"},
        "actions": [team.slack.button("approve")],
    }
    assert (await team.slack.send(team.site.url, payload)).status_code == 403
    assert (await team.broker.inbox.get(one)).state is Settlement.OPEN


async def test_F46_what_an_agent_wrote_stays_text(team: Team) -> None:
    """The stand-in refuses every text that Slack would read as markup; the line of a notification is escaped."""
    await team.ask(arguments={"note": HOSTILE}, message=HOSTILE)
    (shown,) = team.slack.messages.values()
    assert HOSTILE in json.dumps(shown["blocks"])
    assert "<" not in shown["text"]
    assert (shown["parse"], shown["unfurl_links"], shown["link_names"]) == ("none", False, False)


async def test_what_does_not_fit_is_not_decided_in_slack(team: Team) -> None:
    one = await team.ask(arguments={"text": "x" * 5000})
    with pytest.raises(KeyError):
        team.slack.button("approve")
    assert team.slack.button("open")["url"] == f"https://inbox.example/interrupts/{one}"


async def test_a_press_about_another_question_than_was_shown_counts_nothing(team: Team) -> None:
    """The digest of what the person saw travels with the button."""
    one = await team.ask()
    button = team.slack.button("approve")
    button["value"] = f"{one} sha256:{'0' * 64}"
    await team.slack.press(team.site.url, "U1", button)
    await await_until(lambda: team.slack.whispers)
    assert "not counted" in team.slack.whispers[0][1]
    assert (await team.broker.inbox.get(one)).state is Settlement.OPEN


async def test_slack_that_fails_is_asked_again(team: Team) -> None:
    team.slack.fail_next.append("internal_error")
    await team.ask()
    assert len(team.slack.messages) == 1


async def test_what_is_open_when_the_bot_starts_is_posted_and_its_cards_outlive_it(
    broker: AsyncBroker,
) -> None:
    action = Action(tool="refund", arguments={"amount": 1})
    made = await broker.suspend("airline", Interrupt.approval(action, "call-1"), session="s")
    async with workspace() as slack:
        async with posting(Slack(broker, settings(slack))):
            await await_until(lambda: broker.events.noted("slack", made.interrupt_ids[0]))
        await broker.inbox.answer(made.interrupt_ids[0], Approve(), by=BOB)
        async with posting(Slack(broker, settings(slack))):
            await await_until(lambda: "Approved by bob." in slack.shown())
        assert len(slack.messages) == 1


async def test_P9_cards_are_brought_up_to_date_after_a_gap(
    broker: AsyncBroker, server: RunningServer
) -> None:
    """Everything that happened while no bot ran was trimmed: what is open has its card, what is not shows its end."""
    async with workspace() as slack:
        old = await approval(broker, "old")
        async with posting(Slack(broker, settings(slack))):
            await await_until(lambda: broker.events.noted("slack", old))
        await broker.inbox.answer(old, Approve(), by=BOB)
        await approval(broker, "new")
        p = broker._link.space.partition(0)
        with redis.Redis.from_url(server.url) as client:
            for name in ("interrupts", "dispositions"):
                client.xtrim(p.key(name), maxlen=0, approximate=False)
        async with posting(Slack(broker, settings(slack))):
            await await_until(lambda: "Approved by bob." in slack.shown() and len(slack.messages) == 2)


async def approval(broker: AsyncBroker, session: str) -> str:
    action = Action(tool="refund", arguments={"amount": 1})
    return (
        await broker.suspend("airline", Interrupt.approval(action, "call-1"), session=session)
    ).interrupt_ids[0]
