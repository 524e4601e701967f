"""The pages that only show: the list, the card, what happened in a session, dead letters, the fleet. None decides."""

import contextlib
from datetime import datetime

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..._async.client import AsyncBroker
from ...core.access import Scope
from ...core.fleet import PoolCount
from ...core.models import Action
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import Corrupt, UnknownId
from ..identity import CallerOf, needs
from ..routes import BrokerOf
from . import forms, listing
from .card import Card
from .listing import Wanted
from .page import PageRoute, show, to

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

ENTRIES = 200
POOLS = 20
HEADS = 20
MOST_TOGETHER = 50
"""How many of the other questions of its pause a card names."""


@router.get("")
@needs(Scope.READ)
async def inbox(
    request: Request, broker: BrokerOf, caller: CallerOf, cursor: str | None = None
) -> HTMLResponse:
    """What waits for an answer."""
    wanted = Wanted.of(request)
    found = await listing.listed(broker, wanted, caller.principal, cursor)
    return show(
        request, "list.html", wanted=wanted, listed=found, cursor=cursor, fleet=await broker.fleet(),
        ages=listing.AGE_WORDS, kinds=listing.KINDS, kind_words=listing.KIND_WORDS,
        mine=listing.names(caller.principal),
    )  # fmt: skip


@router.get("/next")
@needs(Scope.READ)
async def next_one(request: Request, broker: BrokerOf, after: str = "") -> RedirectResponse:
    """The oldest open question but one; the list where there is none."""
    page = await broker.inbox.list(limit=2)
    found = next((one.id for one in page.items if one.id != after), None)
    return to(request, f"/i/{found}" if found else "")


@router.get("/i/{interrupt_id}")
@needs(Scope.READ)
async def card(
    request: Request,
    broker: BrokerOf,
    caller: CallerOf,
    interrupt_id: str,
    conversation: bool = False,  # noqa: FBT001, FBT002 - a query
) -> HTMLResponse:
    """One question. Opening it decides nothing (F40)."""
    shown = Card(await broker.inbox.get(interrupt_id), caller.scopes)
    shown.together = await _together(broker, shown.record)
    if conversation:
        shown.frozen = await broker.runs.state(shown.record.run_id)
        shown.seq = (await broker.runs.get(shown.record.run_id)).seq
    return show(request, "card.html", card=shown)


async def _together(broker: AsyncBroker, asked: InterruptRecord) -> tuple[InterruptRecord, ...]:
    """The other questions of a pause, while it is its run's last."""
    with contextlib.suppress(UnknownId, Corrupt):
        run = await broker.runs.get(asked.run_id)
        others = [one for one in run.interrupt_ids if one != asked.id and run.seq == asked.seq]
        return tuple([await broker.inbox.get(one) for one in others[:MOST_TOGETHER]])
    return ()


@router.get("/i/{interrupt_id}/edit")
@needs(Scope.ANSWER)
async def edit(request: Request, broker: BrokerOf, caller: CallerOf, interrupt_id: str) -> Response:
    """The arguments of a call as a form."""
    shown = Card(await broker.inbox.get(interrupt_id), caller.scopes)
    if "edit" not in shown.offers or shown.record.interrupt.action is None:
        return to(request, f"/i/{interrupt_id}")
    as_json = request.query_params.get("as") == "json"
    form = edit_form(shown, as_json=as_json)
    return show(request, "edit.html", card=shown, form=form, as_json=as_json)


def edit_form(shown: Card, *, as_json: bool) -> forms.Field:
    """The form of a call's arguments: by their schema, else by what they are now; whole as JSON where asked."""
    one = shown.record.interrupt
    action: Action | None = one.action
    if action is None:
        raise HTTPException(404, "There is nothing to edit here")
    if as_json:
        return forms.Field("arguments", "Arguments", "json", value=action.arguments)
    if one.arguments_schema is not None:
        return forms.form_of(one.arguments_schema, "arguments", action.arguments)
    return forms.form_from(action.arguments, "arguments")


@router.get("/sessions/{session_id:path}")
@needs(Scope.READ)
async def session(request: Request, broker: BrokerOf, session_id: str, start: int = 0) -> HTMLResponse:
    """What happened in a session, oldest first."""
    entries = await broker.history(session_id, start=max(start, 0), limit=ENTRIES)
    return show(
        request, "session.html", session_id=session_id, entries=entries, start=max(start, 0), most=ENTRIES,
        active=await broker.active(session_id),
    )  # fmt: skip


@router.get("/dead")
@needs(Scope.READ)
async def dead(request: Request, broker: BrokerOf, done: str = "", refused: str = "") -> HTMLResponse:
    """The runs that failed too often."""
    found = await broker.dead.list(limit=100)
    return show(request, "dead.html", runs=found, done=done, refused=refused, fleet=await broker.fleet())


@router.get("/fleet")
@needs(Scope.READ)
async def fleet(request: Request, broker: BrokerOf) -> HTMLResponse:
    """Who works, what waits for them, and for how long."""
    found = await broker.fleet()
    pools = [(pool, await _head_since(broker, pool)) for pool in found.pools[:POOLS]]
    oldest = (await broker.inbox.list(limit=1)).items
    return show(request, "fleet.html", fleet=found, pools=pools, oldest=oldest[0] if oldest else None)


async def _head_since(broker: AsyncBroker, pool: PoolCount) -> datetime | None:
    """Since when the oldest of the next runs of a pool is ready."""
    if not pool.ready:
        return None
    ids = await broker.runs.ready(pool.queue, (pool.agent,), limit=HEADS)
    found = [run.updated_at for run in [await broker.runs.get(one) for one in ids] if run.state == "ready"]
    return min(found, default=None)


@router.get("/batch")
@needs(Scope.READ)
async def batch(request: Request, broker: BrokerOf, caller: CallerOf) -> HTMLResponse:
    """Several questions, to be decided at once: each class of equal calls is shown whole before."""
    picked = list(dict.fromkeys(request.query_params.getlist("pick")))[: listing.GROUPED]
    found = []
    for one in picked:
        with contextlib.suppress(UnknownId):
            found.append(await broker.inbox.get(one))
    open_ = [one for one in found if one.state is Settlement.OPEN]
    groups = listing.grouped(open_)
    return show(
        request, "batch.html", groups=groups, offers=_common(groups, caller.scopes), count=len(open_),
        gone=len(picked) - len(open_),
    )  # fmt: skip


def _common(groups: list[listing.Group], scopes: frozenset[Scope]) -> set[str]:
    """The answers that all of them take and this reader may give."""
    offers = [set(Card(one.first, scopes).offers) for one in groups]
    return set.intersection(*offers) & {"approve", "reject", "cancel"} if offers else set()
