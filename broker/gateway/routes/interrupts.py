"""Interrupts: list, show and answer them."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from ...core.access import Scope
from ..bodies import AnswerBody, BatchBody, of_content, read
from ..identity import CallerOf, check_answers, needs
from ..limits import Sent
from ..openapi import gives, takes
from . import BrokerOf, OperationOf, one_of_many, outcome_told, resource, told

router: APIRouter = resource("/interrupts", "interrupts")
answers: APIRouter = resource("/answers", "interrupts")

_APPROVE: Any = {"answer": {"kind": "approve"}}


class Wanted(BaseModel, extra="forbid", frozen=True):
    """Which open interrupts are wanted; what is absent is no matter."""

    queue: str | None = None
    tool: str | None = None
    kind: str | None = None
    label: str | None = None
    reviewer: str | None = None
    older_than_ms: int | None = Field(None, ge=0, le=10**13)
    cursor: str | None = None
    limit: int = Field(50, ge=1, le=500)


@router.get("", operation_id="list_interrupts", **gives("InterruptPage", pages=True))
@needs(Scope.READ)
async def list_interrupts(
    request: Request, broker: BrokerOf, wanted: Annotated[Wanted, Query()]
) -> JSONResponse:
    """One page of open interrupts, the oldest first. Ask again with its cursor until there is none."""
    given = wanted.model_dump(exclude={"older_than_ms"})
    older = timedelta(milliseconds=wanted.older_than_ms) if wanted.older_than_ms is not None else None
    page = await broker.inbox.list(**given, older_than=older)
    if page.cursor is None:
        return told(page)
    further = request.url.include_query_params(cursor=page.cursor)
    # Without a host: it is the caller who knows by which one the gateway is reached.
    return told(page, headers={"Link": f'<{further.path}?{further.query}>; rel="next"'})


@router.get("/{interrupt_id}", operation_id="show_interrupt", **gives("InterruptRecord"))
@needs(Scope.READ)
async def show_interrupt(broker: BrokerOf, interrupt_id: str) -> JSONResponse:
    """One interrupt, open or settled, with its question and how it ended."""
    return told(await broker.inbox.get(interrupt_id))


@router.post(
    "/{interrupt_id}/answer", operation_id="answer_interrupt",
    **gives("Outcome", also=[202]), **takes("AnswerBody", _APPROVE),
)  # fmt: skip
@needs(Scope.ANSWER)
async def answer_interrupt(
    broker: BrokerOf, caller: CallerOf, op: OperationOf, interrupt_id: str, sent: Sent
) -> JSONResponse:
    """What became of an answer: the first one counts, the others are told who was first. Safe to repeat."""
    body = read(AnswerBody, sent, op=op)
    check_answers(caller, body.answer.kind)
    return outcome_told(
        await broker.inbox.answer(interrupt_id, body.answer, by=caller.principal, seen=body.seen, op=body.op)
    )


@answers.post(
    "", operation_id="answer_many", **gives("BatchOutcomes"),
    **takes("BatchBody", {"answers": [{"interrupt_id": "int_...", **_APPROVE}]}),
)  # fmt: skip
@needs(Scope.ANSWER)
async def answer_many(broker: BrokerOf, caller: CallerOf, op: OperationOf, sent: Sent) -> JSONResponse:
    """What became of each of several answers, in their order; what does not fit is told in its place. Repeatable."""
    items = read(BatchBody, sent).items(of_content(op, sent))
    for one in items:
        check_answers(caller, one.answer.kind)
    outcomes = await broker.batch.answer(items, by=caller.principal)
    rows = [
        {"interrupt_id": one.interrupt_id, **one_of_many(outcome)}
        for one, outcome in zip(items, outcomes, strict=True)
    ]
    return JSONResponse({"outcomes": rows})
