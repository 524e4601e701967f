"""Interrupts: list, show and answer them."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response
from fastapi.responses import JSONResponse

from ...core.access import Scope
from ...core.answers import Answer
from ...errors import OUTCOME_CODES, InvalidInput
from ..identity import CallerOf, check_answers, needs
from ..problems import of_outcome
from . import BrokerOf

router: APIRouter = APIRouter(prefix="/v1/interrupts", tags=["interrupts"])


@router.get("")
@needs(Scope.READ)
async def list_interrupts(
    broker: BrokerOf,
    queue: str | None = None,
    tool: str | None = None,
    kind: str | None = None,
    label: str | None = None,
    reviewer: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Any:
    """One page of open interrupts, the oldest first."""
    page = await broker.inbox.list(
        queue=queue, tool=tool, kind=kind, label=label, reviewer=reviewer, cursor=cursor, limit=limit
    )
    return JSONResponse(page.to_json())


@router.get("/{interrupt_id}")
@needs(Scope.READ)
async def show_interrupt(broker: BrokerOf, interrupt_id: str) -> Any:
    """One interrupt, open or settled."""
    return JSONResponse((await broker.inbox.get(interrupt_id)).to_json())


@router.post("/{interrupt_id}/answer")
@needs(Scope.ANSWER)
async def answer_interrupt(
    broker: BrokerOf, caller: CallerOf, interrupt_id: str, body: Annotated[dict[str, Any], Body()]
) -> Response:
    """What became of an answer: `{"answer": {"kind": "approve"}, "seen": "<digest>"}`. Safe to repeat."""
    unknown = body.keys() - {"answer", "seen", "op"}
    if unknown:
        raise InvalidInput(min(unknown), "is not known here", "answer, seen, op")
    answer = Answer.from_json(body.get("answer"))
    check_answers(caller, answer.kind)
    outcome = await broker.inbox.answer(
        interrupt_id, answer, by=caller.principal, seen=body.get("seen"), op=body.get("op")
    )
    if not outcome.ok:
        return of_outcome(outcome)
    return JSONResponse(outcome.to_json(), status_code=OUTCOME_CODES[outcome.code].http)
