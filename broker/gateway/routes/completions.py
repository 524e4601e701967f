"""Completions: what jobs that run elsewhere came to, by interrupt id or by the token of the call, never by a handle."""

from fastapi.responses import JSONResponse

from ...core.access import Scope
from ..bodies import CompleteBody, FailBody, Sent, read
from ..identity import CallerOf, needs
from ..openapi import gives, takes
from . import BrokerOf, OperationOf, outcome_told, resource

router = resource("/completions", "completions")


@router.post(
    "", operation_id="complete", **gives("Outcome", also=[202]),
    **takes("CompleteBody", {"to": "int_...", "value": {"url": "https://example.com/video"}}),
)  # fmt: skip
@needs(Scope.COMPLETE)
async def complete(broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent) -> JSONResponse:
    """What became of a result. One that comes before its question is kept (202). Safe to repeat."""
    body = read(CompleteBody, sent, op=op)
    return outcome_told(await broker.complete(body.to, body.value, by=caller.principal, op=body.op))


@router.post(
    "/failures", operation_id="fail", **gives("Outcome", also=[202]),
    **takes("FailBody", {"to": "int_...", "error": "the studio is closed"}),
)  # fmt: skip
@needs(Scope.COMPLETE)
async def fail(broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent) -> JSONResponse:
    """What became of a failure; its text reaches the agent. Safe to repeat."""
    body = read(FailBody, sent, op=op)
    return outcome_told(await broker.fail(body.to, body.error, by=caller.principal, op=body.op))
