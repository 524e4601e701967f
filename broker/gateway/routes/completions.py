"""Jobs that run elsewhere: what they came to, and that they still run; by interrupt id or token, never by a handle."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from ...core.access import Scope
from ...errors import InvalidInput
from ..bodies import CompleteBody, FailBody, HeartbeatBody, read
from ..identity import Caller, CallerOf, bearer, needs
from ..limits import Sent
from ..openapi import gives, takes
from . import BrokerOf, OperationOf, outcome_told, resource

router: APIRouter = resource("/completions", "completions")
heartbeats: APIRouter = resource("/heartbeats", "completions")


@router.post(
    "", operation_id="complete", **gives("Outcome", also=[202]),
    **takes("CompleteBody", {"to": "int_...", "value": {"url": "https://example.com/video"}}),
)  # fmt: skip
@needs(Scope.COMPLETE, own=True)
async def complete(
    request: Request, broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent
) -> JSONResponse:
    """What became of a result. One that comes before its question is kept (202). Safe to repeat."""
    body = read(CompleteBody, sent, op=op)
    return outcome_told(
        await broker.complete(_job(request, caller, body.to), body.value, by=caller.principal, op=body.op)
    )


@router.post(
    "/failures", operation_id="fail", **gives("Outcome", also=[202]),
    **takes("FailBody", {"to": "int_...", "error": "the studio is closed"}),
)  # fmt: skip
@needs(Scope.COMPLETE, own=True)
async def fail(
    request: Request, broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent
) -> JSONResponse:
    """What became of a failure; its text reaches the agent. Safe to repeat."""
    body = read(FailBody, sent, op=op)
    return outcome_told(
        await broker.fail(_job(request, caller, body.to), body.error, by=caller.principal, op=body.op)
    )


@heartbeats.post(
    "", operation_id="heartbeat", **gives("Outcome"), **takes("HeartbeatBody", {"to": "int_..."})
)
@needs(Scope.BEAT, own=True)
async def heartbeat(request: Request, broker: BrokerOf, caller: CallerOf, sent: Sent) -> JSONResponse:
    """What became of telling that a job still runs: its next span begins now. Safe to repeat."""
    body = read(HeartbeatBody, sent)
    return outcome_told(await broker.heartbeat(_job(request, caller, body.to)))


def _job(request: Request, caller: Caller, to: str | None) -> str:
    """The job that is meant: the one that is named; for the holder of a token that of the token, and no other."""
    if caller.token is None:
        if to is None:
            raise InvalidInput("to", "is missing", "an interrupt's id, or the token that the call was given")
        return to
    shown = bearer(request)
    if to not in (None, shown, caller.token.about.interrupt_id):
        raise InvalidInput("to", "is not what this token is for", "nothing, beside a token")
    return shown
