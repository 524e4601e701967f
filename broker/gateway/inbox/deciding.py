"""The forms that decide. Each is a POST from a page of the decider's own session; the decider is whom its key says."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from ..._async.client import AsyncBroker
from ...core.access import Scope
from ...core.answers import Answer, AnswerKind, Approve, Cancel, Principal, Reject
from ...core.batches import AnswerTo
from ...core.outcomes import Accepted, Invalid, Outcome, Replayed
from ...errors import OUTCOME_CODES, BrokerError
from ..identity import CallerOf, needs
from ..routes import BrokerOf
from . import forms, listing, visible, words
from .card import Card
from .looking import edit_form
from .page import PageRoute, show, to
from .session import signed_form

MOST_DIGITS = 15

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.post("/i/{interrupt_id}/answer")
@needs(Scope.ANSWER)
async def answer(request: Request, broker: BrokerOf, caller: CallerOf, interrupt_id: str) -> Response:
    """One answer to one question, bound to what was shown. The loser of a race is told who was first (F11)."""
    form = await signed_form(request)
    card = Card(await broker.inbox.get(interrupt_id), caller.scopes)
    card, outcome = await decided(broker, card, form, caller.principal)
    if outcome is not None and outcome.ok:
        return to(request, f"/i/{interrupt_id}")
    code = OUTCOME_CODES[outcome.code].http if outcome is not None else 422
    return show(request, "card.html", code=code, card=card)


async def decided(
    broker: AsyncBroker, card: Card, form: FormData, by: Principal
) -> tuple[Card, Outcome | None]:
    """What became of the answer that a form says, and the card that tells it; None where it cannot be read."""
    kind, name = text(form, "kind"), card.record.id
    if card.is_open and kind not in card.offers:
        raise HTTPException(403, f"This question takes no {kind!r} from you")
    said = card.answer(kind, form)
    if said is None:
        return card, None
    outcome = await broker.inbox.answer(name, said, by=by, seen=text(form, "seen") or None)
    if isinstance(outcome, Invalid):
        card.misfit(outcome)
        return card, outcome
    refusal = "" if outcome.ok else words.refusal(outcome)
    return Card(await broker.inbox.get(name), card.scopes, banner=refusal), outcome


@router.post("/i/{interrupt_id}/edit")
@needs(Scope.ANSWER)
async def preview(request: Request, broker: BrokerOf, caller: CallerOf, interrupt_id: str) -> Response:
    """What an edit would change, before it is sent. Decides nothing."""
    form = await signed_form(request)
    card = Card(await broker.inbox.get(interrupt_id), caller.scopes)
    if "edit" not in card.offers or card.record.interrupt.action is None:
        return to(request, f"/i/{interrupt_id}")
    as_json = text(form, "as") == "json"
    fields = edit_form(card, as_json=as_json)
    try:
        arguments = forms.read(fields, form)
    except forms.Misread:
        return show(request, "edit.html", code=422, card=card, form=fields, as_json=as_json)
    changed = visible.changes(card.record.interrupt.action.arguments, arguments)
    return show(request, "preview.html", card=card, arguments=arguments, changed=changed, seen=text(form, "seen"),
                note=text(form, "note"))  # fmt: skip


@router.post("/batch")
@needs(Scope.ANSWER)
async def decide_batch(request: Request, broker: BrokerOf, caller: CallerOf) -> HTMLResponse:
    """One answer to several questions, each bound to what was shown and with an outcome of its own (F34)."""
    form = await signed_form(request)
    said = _said(form)
    picked = [str(one).partition("|") for one in form.getlist("pick")][: listing.GROUPED]
    if not picked:
        raise HTTPException(422, "Nothing was chosen")
    answers = [AnswerTo(name, said, seen or None) for name, _, seen in picked]
    outcomes = await broker.batch.answer(answers, by=caller.principal)
    told = [(one.interrupt_id, *_told(outcome, said)) for one, outcome in zip(answers, outcomes, strict=True)]
    return show(
        request, "outcomes.html", told=told, good=sum(ok for _, ok, _ in told), verb=words.VERBS[said.kind]
    )


def _said(form: FormData) -> Answer:
    reason = text(form, "reason")
    match text(form, "kind"):
        case AnswerKind.APPROVE:
            return Approve()
        case AnswerKind.REJECT if reason:
            return Reject(reason=reason)
        case AnswerKind.REJECT:
            raise HTTPException(422, "A rejection needs a reason: the agents are told")
        case AnswerKind.CANCEL:
            return Cancel(reason=reason or None)
        case kind:
            raise HTTPException(422, f"{kind!r} is no answer to several questions")


def _told(outcome: Outcome | BrokerError, said: Answer) -> tuple[bool, str]:
    match outcome:
        case Accepted() | Replayed():
            return True, words.VERBS[said.kind]
        case BrokerError():
            return False, str(outcome)
        case _:
            return False, words.refusal(outcome)


@router.post("/dead/{run_id}/requeue")
@needs(Scope.OPERATE)
async def requeue(request: Request, broker: BrokerOf, caller: CallerOf, run_id: str) -> Response:
    """Sends a dead run back to its queue; it is about the death that was shown."""
    form = await signed_form(request)
    fence = text(form, "fence")
    if fence and not (fence.isdecimal() and len(fence) <= MOST_DIGITS):
        raise HTTPException(
            422, "This form does not say which death it is about. Open the page and send it again"
        )
    outcome = await broker.dead.requeue(run_id, fence=int(fence) if fence else None, by=caller.principal)
    return to(request, f"/dead?{'done' if outcome.ok else 'refused'}={run_id}")


def text(form: FormData, name: str) -> str:
    """One text of a form."""
    found: Any = form.get(name, "")
    return found.strip() if isinstance(found, str) else ""
