"""The resources, a module for each noun."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import JSONResponse

from ..._async.client import AsyncBroker
from ...core.outcomes import Outcome
from ...core.shape import Model
from ...errors import OUTCOME_CODES
from ..identity import CallerOf
from ..limits import Timed, operation
from ..problems import of_outcome


def resource(prefix: str, tag: str) -> APIRouter:
    """The routes of one noun under `/v1`."""
    return APIRouter(prefix=f"/v1{prefix}", tags=[tag], route_class=Timed)


def broker_of(request: Request) -> AsyncBroker:
    """The broker that this gateway is of."""
    broker: AsyncBroker = request.app.state.broker
    return broker


def operation_of(
    caller: CallerOf,
    idempotency_key: Annotated[
        str | None,
        Header(description="Names the operation for repeats, by this caller: 1 to 128 visible characters."),
    ] = None,
) -> str | None:
    """The operation that the request names for repeats, else None."""
    return operation(idempotency_key, caller)


BrokerOf = Annotated[AsyncBroker, Depends(broker_of)]
OperationOf = Annotated[str | None, Depends(operation_of)]


def told(value: Model, *, http: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    """A value as it is published."""
    return JSONResponse(value.to_json(), http, headers)


def outcome_told(outcome: Outcome) -> JSONResponse:
    """An outcome: success with its own number, anything else as a problem."""
    if not outcome.ok:
        return of_outcome(outcome)
    return told(outcome, http=OUTCOME_CODES[outcome.code].http)


def one_of_many(outcome: Any) -> dict[str, Any]:
    """An outcome, or an error in its place, as an item of a list."""
    if isinstance(outcome, BaseException):
        return {"ok": False, "code": getattr(outcome, "code", "broker_error"), "text": str(outcome)}
    return {"ok": outcome.ok, **outcome.to_json(), "text": str(outcome)}
