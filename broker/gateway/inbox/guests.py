"""The card for an outsider: whoever has the token of one question sees it and answers it, and nothing else.

Opening the link decides nothing (F40): mail scanners and previews may. The token is the credential and stands in the
address, so the page carries no link to elsewhere and no history.
"""

import hashlib
import hmac

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from ..._async.client import AsyncBroker
from ...core.access import Scope
from ...core.tokens import SCOPES, Purpose
from ...errors import OUTCOME_CODES, Untrusted
from ..identity import Caller, CallerOf, Identify, needs
from ..routes import BrokerOf
from .card import Card
from .deciding import decided, text
from .page import PageRoute, show
from .session import check_origin, place

router: APIRouter = APIRouter(prefix="/t", route_class=PageRoute, include_in_schema=False)


def guests_of(broker: AsyncBroker) -> Identify:
    """Knows outsiders by the token in the address of their page, and only there."""

    async def identify(request: Request) -> Caller | None:
        shown = request.path_params.get("token")
        if shown is None or not request.url.path.startswith(f"{place(request)}/t/"):
            return None
        try:
            token = await broker.tokens.verify(shown, Purpose.DECIDE)
        except Untrusted as refused:
            raise HTTPException(403, f"This link does not count: {refused.reason}") from None
        request.state.interrupt_id = token.about.interrupt_id
        return Caller(token.principal, SCOPES[Purpose.DECIDE], f"token:{token.id}")

    return identify


def seal(token: str) -> str:
    """What the form of a guest's page carries: made of the token, which other sites do not know."""
    return hashlib.sha256(b"guest\0" + token.encode()).hexdigest()


async def _card(request: Request, broker: AsyncBroker, caller: Caller) -> Card:
    interrupt_id = getattr(request.state, "interrupt_id", None)
    if interrupt_id is None:
        raise HTTPException(403, "This link is for whoever has no key: open it without one")
    return Card(await broker.inbox.get(interrupt_id), caller.scopes)


@router.get("/{token}")
@needs(Scope.READ)
async def guest(request: Request, broker: BrokerOf, caller: CallerOf, token: str) -> Response:
    """The one question that a token is for."""
    return show(
        request, "guest.html", card=await _card(request, broker, caller), token=token, csrf=seal(token)
    )


@router.post("/{token}/answer")
@needs(Scope.ANSWER)
async def guest_answer(request: Request, broker: BrokerOf, caller: CallerOf, token: str) -> Response:
    """The answer of whoever has the token, bound to what was shown."""
    check_origin(request)
    form = await request.form()
    if not hmac.compare_digest(text(form, "csrf").encode(), seal(token).encode()):
        raise HTTPException(403, "This form is not of this page. Open the link and send it again")
    card, outcome = await decided(broker, await _card(request, broker, caller), form, caller.principal)
    if outcome is not None and outcome.ok:
        # Shown at once, and not sent elsewhere to be read: a link for one use has had it.
        card = await _card(request, broker, caller)
    code = OUTCOME_CODES[outcome.code].http if outcome is not None else 422
    return show(request, "guest.html", code=code, card=card, token=token, csrf=seal(token))
