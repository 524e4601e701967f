"""Runs: start, show, explain and withdraw them; and the sessions they are of."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from ...core.access import Scope
from ...errors import OUTCOME_CODES
from ..bodies import HistoryPage, StartBody, WithdrawBody, read
from ..identity import CallerOf, needs
from ..limits import Sent
from ..openapi import gives, takes
from . import BrokerOf, OperationOf, outcome_told, resource, told

router: APIRouter = resource("/runs", "runs")
sessions: APIRouter = resource("/sessions", "sessions")

SessionId = Annotated[str, Path(description="The session, as its runs were started with.")]


@router.post(
    "", operation_id="start_run", **gives("Outcome", http=201, also=[200]),
    **takes("StartBody", {"agent": "airline", "session": "s_1", "input": "Please cancel ABC123."}),
)  # fmt: skip
@needs(Scope.START)
async def start_run(broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent) -> JSONResponse:
    """A new run (201), or the one that there is under its key (200)."""
    body = read(StartBody, sent, op=op)
    given = {
        name: getattr(body, name)
        for name in StartBody.model_fields
        if name not in ("agent", "input", "unknown")
    }
    outcome = await broker.start(body.agent, body.input, by=caller.principal, **given)
    return told(outcome, http=201 if outcome.code == "accepted" else OUTCOME_CODES[outcome.code].http)


@router.get("/{run_id}", operation_id="show_run", **gives("RunRecord"))
@needs(Scope.READ)
async def show_run(broker: BrokerOf, run_id: str) -> JSONResponse:
    """One run, from its first step to its end."""
    return told(await broker.runs.get(run_id))


@router.get("/{run_id}/why", operation_id="explain_run", **gives("Why"))
@needs(Scope.READ)
async def explain_run(broker: BrokerOf, run_id: str) -> JSONResponse:
    """Why a run stands where it stands: what it waits for, who could move it on, and what to do if nobody does."""
    return told(await broker.runs.why(run_id))


@router.post(
    "/{run_id}/withdraw", operation_id="withdraw_run", **gives("Outcome"),
    **takes("WithdrawBody", {"reason": "the customer called"}),
)  # fmt: skip
@needs(Scope.START)
async def withdraw_run(
    broker: BrokerOf, caller: CallerOf, op: OperationOf, run_id: str, sent: Sent
) -> JSONResponse:
    """Takes a run's open questions back and closes it. Safe to repeat."""
    body = read(WithdrawBody, sent, op=op)
    return outcome_told(
        await broker.runs.withdraw(
            run_id, seq=body.seq, reason=body.reason, superseded=body.superseded, by=caller.principal, op=body.op
        )
    )  # fmt: skip


@sessions.get("/{session_id}/active", operation_id="active_runs", **gives("Active"))
@needs(Scope.READ)
async def active_runs(broker: BrokerOf, session_id: SessionId) -> JSONResponse:
    """The runs of a session that are interrupted, each with the number of its pause. Empty: none is."""
    return JSONResponse({"session_id": session_id, "runs": await broker.active(session_id)})


@sessions.get("/{session_id}/history", operation_id="session_history", **gives("HistoryPage"))
@needs(Scope.READ)
async def session_history(
    broker: BrokerOf,
    session_id: SessionId,
    start: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> JSONResponse:
    """What happened in a session, the oldest first: who, when, what."""
    found = await broker.history(session_id, start=start, limit=limit)
    more = start + len(found) if len(found) == limit else None
    return told(HistoryPage(items=found, next=more))
