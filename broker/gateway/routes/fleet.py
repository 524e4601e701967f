"""The fleet, and what an operator does: dead letters and API keys."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from ...core.access import Scope
from ..bodies import KeyBody, RequeueBody, RotateBody, RunList, read
from ..identity import CallerOf, needs
from ..limits import Sent
from ..openapi import gives, takes
from . import BrokerOf, outcome_told, resource, told

router: APIRouter = resource("/fleet", "fleet")
dead: APIRouter = resource("/dead", "dead letters")
keys: APIRouter = resource("/keys", "keys")


@router.get("", operation_id="show_fleet", **gives("Fleet"))
@needs(Scope.READ)
async def show_fleet(broker: BrokerOf) -> JSONResponse:
    """What the namespace holds now: open, ready and dead, and the workers that say they are there."""
    return told(await broker.fleet())


@dead.get("", operation_id="list_dead", **gives("RunList"))
@needs(Scope.READ)
async def list_dead(broker: BrokerOf, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> JSONResponse:
    """Runs that failed too often, the first to die first, with their errors."""
    return told(RunList(items=await broker.dead.list(limit=limit)))


@dead.post(
    "/{run_id}/requeue", operation_id="requeue_run", **gives("Outcome"),
    **takes("RequeueBody", {"queue": "agents"}),
)  # fmt: skip
@needs(Scope.OPERATE)
async def requeue_run(broker: BrokerOf, caller: CallerOf, run_id: str, sent: Sent) -> JSONResponse:
    """Sends a dead run back. It is about one death (`fence`). Safe to repeat."""
    body = read(RequeueBody, sent)
    return outcome_told(
        await broker.dead.requeue(run_id, fence=body.fence, queue=body.queue, by=caller.principal)
    )


@keys.get("", operation_id="list_keys", **gives("KeyList"))
@needs(Scope.OPERATE)
async def list_keys(broker: BrokerOf) -> JSONResponse:
    """The API keys of the namespace, without their secrets."""
    return JSONResponse({"items": [one.to_json() for one in await broker.keys.list()]})


@keys.post(
    "", operation_id="create_key", **gives("NewKey", http=201),
    **takes("KeyBody", {"principal": {"id": "ada"}, "role": "reviewer"}),
)  # fmt: skip
@needs(Scope.OPERATE)
async def create_key(broker: BrokerOf, sent: Sent) -> JSONResponse:
    """A new key; its text is told here once and kept nowhere. Each call makes another key."""
    body = read(KeyBody, sent)
    span = timedelta(milliseconds=body.expires_in_ms) if body.expires_in_ms is not None else None
    new = await broker.keys.create(body.principal, body.role, expires_in=span, note=body.note)
    return told(new, http=201)


@keys.post(
    "/{key_id}/rotate", operation_id="rotate_key", **gives("NewKey", http=201),
    **takes("RotateBody", {"overlap_ms": 3_600_000}),
)  # fmt: skip
@needs(Scope.OPERATE)
async def rotate_key(broker: BrokerOf, key_id: str, sent: Sent) -> JSONResponse:
    """A new key in the place of another one, which counts for a while more. It is rotated once: not to be repeated."""
    body = read(RotateBody, sent)
    return told(await broker.keys.rotate(key_id, overlap=timedelta(milliseconds=body.overlap_ms)), http=201)


@keys.post("/{key_id}/revoke", operation_id="revoke_key", **gives("ApiKey"))
@needs(Scope.OPERATE)
async def revoke_key(broker: BrokerOf, key_id: str) -> JSONResponse:
    """The key as it is now: it counts no more, from the next request on. Safe to repeat."""
    return told(await broker.keys.revoke(key_id))
