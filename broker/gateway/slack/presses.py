"""What comes back from Slack: signed, not older than five minutes, and from somebody whom the namespace knows."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from ..._async.client import AsyncBroker
from ...core.access import may_decide
from ...core.answers import Answer, AnswerKind, Approve, Edit, Principal, Reject
from ...core.outcomes import Accepted, AlreadyDecided, Outcome, Replayed
from ...core.records import InterruptRecord
from ...errors import BrokerError
from ..identity import PUBLIC, needs
from ..problems import Problem
from . import cards
from .settings import SlackSettings

log: logging.Logger = logging.getLogger("broker.slack")

ACKNOWLEDGE_SECONDS: Final = 2.0
"""Slack waits for three seconds; what takes longer goes on by itself."""
Show = Callable[[InterruptRecord], Awaitable[None]]


class Refused(Exception):
    """What a person is told instead of an outcome."""


class Presses:
    """The route that Slack sends presses and forms to."""

    def __init__(self, broker: AsyncBroker, settings: SlackSettings, api: AsyncWebClient, show: Show) -> None:
        self._broker = broker
        self._settings = settings
        self._api = api
        self._show = show
        self._verifier = SignatureVerifier(settings.signing_secret)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.router: APIRouter = APIRouter(prefix="/v1/slack", tags=["slack"], include_in_schema=False)
        self.router.add_api_route("/interactive", self._route(), methods=["POST"])

    def _route(self) -> Callable[[Request], Awaitable[Response]]:
        @needs(PUBLIC)  # Slack shows no key: its signature is looked at here
        async def interactive(request: Request) -> Response:
            body = await request.body()
            if not self._is_from_slack(body, request):
                log.warning("a request to Slack's route is not signed by Slack, or is old")
                return Problem(401, "unauthenticated", "This is not signed by Slack, or it is old.")
            payload = _payload(body)
            team = (payload.get("team") or {}).get("id")
            if self._settings.team not in (None, team):
                return Problem(403, "not_permitted", "This workspace is not served here.")
            if payload.get("type") == "block_actions":
                _ = self._start(self._pressed(payload))
            elif payload.get("type") == "view_submission":
                return await self._submitted(payload)
            return Response()

        return interactive

    def _is_from_slack(self, body: bytes, request: Request) -> bool:
        """Whether the raw body carries Slack's signature, of the last five minutes."""
        stamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        if not (stamp.isascii() and stamp.isdecimal() and signature.isascii()):
            return False
        try:
            return self._verifier.is_valid(body, stamp, signature)
        except UnicodeDecodeError:
            return False

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if (
            not task.cancelled()
            and (fault := task.exception()) is not None
            and not isinstance(fault, Refused)
        ):
            log.warning("what was pressed in Slack has failed: %s: %s", type(fault).__name__, fault)

    async def _pressed(self, payload: dict[str, Any]) -> None:
        user, channel = payload["user"]["id"], (payload.get("channel") or {}).get("id")
        for action in payload.get("actions", ()):
            kind = str(action.get("action_id", "")).removeprefix("broker_")
            if kind not in (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT):
                continue
            interrupt, _, seen = str(action.get("value", "")).partition(" ")
            try:
                if kind == AnswerKind.APPROVE:
                    said = _said(await self._decide(user, interrupt, seen, Approve()))
                else:
                    await self._ask(
                        user,
                        payload["trigger_id"],
                        interrupt,
                        AnswerKind(kind),
                        f"{interrupt} {seen} {channel}",
                    )
                    said = ""
            except Refused as refused:
                said = str(refused)
            await self._whisper(channel, user, said)

    async def _ask(self, user: str, trigger: str, interrupt: str, kind: AnswerKind, where: str) -> None:
        """Opens a form: for an edit, or for the reason of a rejection."""
        await self._person(user)
        record = await self._record(interrupt)
        if record.resolution is not None:
            raise Refused(f"This is settled: {cards.ended(record)}")
        await self._api.views_open(trigger_id=trigger, view=cards.modal(record, kind, where))

    async def _submitted(self, payload: dict[str, Any]) -> Response:
        """A form that was sent: what does not fit is told in the form."""
        view, user = payload["view"], payload["user"]["id"]
        interrupt, seen, channel = [*str(view.get("private_metadata", "")).split(" "), "", "", ""][:3]
        said = view["state"]["values"]["said"]["said"].get("value") or ""
        try:
            answer = _answer(str(view["callback_id"]).removeprefix("broker_"), said)
        except Refused as refused:
            return _in_form(str(refused))
        task = self._start(self._decided(user, interrupt, seen, answer, channel))
        done, _ = await asyncio.wait({task}, timeout=ACKNOWLEDGE_SECONDS)
        if done and isinstance(refused_by := task.exception(), Refused):
            return _in_form(str(refused_by))
        return Response()

    async def _decided(self, user: str, interrupt: str, seen: str, answer: Answer, channel: str) -> None:
        outcome = await self._decide(user, interrupt, seen, answer)
        if not isinstance(outcome, Accepted | Replayed | AlreadyDecided):
            raise Refused(str(outcome))
        await self._whisper(channel, user, _said(outcome))

    async def _decide(self, user: str, interrupt: str, seen: str, answer: Answer) -> Outcome:
        who = await self._person(user)
        try:
            outcome = await self._broker.inbox.answer(interrupt, answer, by=who, seen=seen or None)
        except BrokerError as fault:
            raise Refused(f"This was not counted: {fault}") from None
        _ = self._start(self._update(interrupt))
        return outcome

    async def _update(self, interrupt: str) -> None:
        """Brings the card up to date at once, for everyone; the events do the same where this fails."""
        record = await self._record(interrupt)
        if record.resolution is not None:
            await self._show(record)

    async def _person(self, user: str) -> Principal:
        who = await self._settings.person(user)
        if who is None or not may_decide(who):
            log.warning("Slack user %s is nobody here and has decided nothing", user)
            raise Refused(
                "You are not known here as somebody who decides. Ask whoever runs the broker to add you."
            )
        return who

    async def _record(self, interrupt: str) -> InterruptRecord:
        try:
            return await self._broker.inbox.get(interrupt)
        except BrokerError as fault:
            raise Refused(str(fault)) from None

    async def _whisper(self, channel: str | None, user: str, said: str) -> None:
        """Tells one person something that nobody else sees."""
        if said and channel:
            await self._api.chat_postEphemeral(
                channel=channel,
                user=user,
                text=cards.escaped(said),
                blocks=[{"type": "section", "text": cards.plain(said)}],
            )


def _payload(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(parse_qs(body.decode())["payload"][0])
    except (ValueError, KeyError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _answer(kind: str, said: str) -> Answer:
    if kind == AnswerKind.REJECT:
        if not said.strip():
            raise Refused("Say why: the agent is told.")
        return Reject(reason=said.strip())
    try:
        arguments = json.loads(said)
    except (ValueError, RecursionError):
        raise Refused("This is no JSON.") from None
    if kind != AnswerKind.EDIT or not isinstance(arguments, dict):
        raise Refused("The arguments are a JSON object: {...}")
    try:
        return Edit(arguments=arguments)
    except BrokerError as fault:
        raise Refused(str(fault)) from None


def _said(outcome: Outcome) -> str:
    """What the one who pressed is told; nothing where the card says it."""
    match outcome:
        case Accepted() | Replayed():
            return ""
        case AlreadyDecided(winner=won):
            who = won.by.id if won.by is not None else "somebody"
            return f"Thank you, {who} was first: it is decided already."
        case other:
            return f"This was not counted: {other}"


def _in_form(problem: str) -> JSONResponse:
    return JSONResponse({"response_action": "errors", "errors": {"said": problem[:MOST_IN_FORM]}})


MOST_IN_FORM: Final = 500
