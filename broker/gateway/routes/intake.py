"""Webhooks in: signed requests of other services that complete a job or answer, each counted once."""

import hashlib
import json
import logging
from datetime import timedelta
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from standardwebhooks import Webhook, WebhookVerificationError

from ..._async.client import AsyncBroker
from ...core.answers import Answer
from ...core.intakes import Does, Intake, at
from ...core.outcomes import Outcome
from ...errors import InvalidInput
from ..identity import PUBLIC, needs
from ..openapi import gives
from ..problems import Problem
from . import BrokerOf, outcome_told, resource

log: logging.Logger = logging.getLogger("broker.gateway")

router: APIRouter = resource("/intake", "intake")

TOLERANCE: Final = timedelta(minutes=5)
"""How old a request may be, or how early."""


@router.post("/{name}", operation_id="take_in", **gives("Outcome", also=[202]))
@needs(PUBLIC)  # it shows no key: its signature is looked at here
async def take_in(request: Request, broker: BrokerOf, name: str) -> JSONResponse:
    """What became of what a service says, signed after the Standard Webhooks convention with its intake's secret.

    A request counts once: the very same again is refused. The service's own repeat, signed anew, has the same outcome.
    """
    body = await request.body()
    intake = await _of(broker, name)
    if intake is None or not _is_signed(intake, body, request):
        log.warning("a request to an intake is not signed by whom it is for, or is old")
        return Problem(
            401, "unauthenticated", "This is not signed with the secret of this intake, or it is old."
        )
    told = f"{request.headers['webhook-id']} {int(request.headers['webhook-timestamp'])}"
    once = hashlib.sha256(told.encode()).hexdigest()
    if not await broker.intakes._see(intake.name, once, TOLERANCE * 3):  # noqa: SLF001 - the same house
        return Problem(409, "conflict", "This request has been here before.")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return Problem(400, "unreadable", "The body is no JSON")
    op = hashlib.sha256(f"{intake.name}/{request.headers['webhook-id']}".encode()).hexdigest()[:32]
    return outcome_told(await _done(broker, intake, said, f"intake/{op}"))


async def _of(broker: AsyncBroker, name: str) -> Intake | None:
    try:
        return await broker.intakes._find(name)  # noqa: SLF001 - the same house
    except InvalidInput:
        return None


def _is_signed(intake: Intake, body: bytes, request: Request) -> bool:
    """Whether the raw body was signed with one of the secrets, in the last five minutes."""
    headers = {
        name: request.headers.get(name, "")
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    }
    stamp = headers["webhook-timestamp"]
    if not all(headers.values()) or not (stamp.isascii() and stamp.isdecimal()):
        return False  # also of a time that the library would read, and that is not the text that was signed
    for secret in intake.secrets:
        try:
            Webhook(secret.text).verify(body, headers, json_parse=False)
        except (WebhookVerificationError, ValueError):
            continue
        return True
    return False


async def _done(broker: AsyncBroker, intake: Intake, said: Any, op: str) -> Outcome:
    to = at(said, intake.to)
    if not isinstance(to, str):
        raise InvalidInput(
            intake.to, "is not text", "an interrupt's id, or the token that its call was given"
        )
    if intake.does is Does.ANSWER:
        return await broker.inbox.answer(to, Answer.from_json(at(said, intake.answer)), by=intake.by, op=op)
    error = at(said, intake.error, None)
    if error is not None:
        return await broker.fail(
            to, error if isinstance(error, str) else json.dumps(error), by=intake.by, op=op
        )
    return await broker.complete(to, at(said, intake.value), by=intake.by, op=op)
