"""The sessions of people: signed in with an API key, kept in a signed cookie, over when the key counts no more.

Every request looks the key up, so that a revoked one ends its sessions at once, in every gateway. A session counts for
the pages only, never for the JSON API, and for writing only together with the token that its forms carry.
"""

import contextlib
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from ..._async.client import AsyncBroker
from ...core.access import ApiKey, Scope
from ...core.answers import PrincipalKind
from ...core.signing import Signed
from ...errors import Untrusted
from ..identity import Caller, Identify

PREFIX: Final = "/inbox"
PURPOSE: Final = "session"
LASTS: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Session:
    """One person's session, and the token that its forms carry."""

    key: ApiKey
    token: str


def place(request: Request) -> str:
    """Where the pages are, as the browser sees it: below the place where the gateway is mounted."""
    return f"{request.scope.get('root_path', '')}{PREFIX}"


def cookie_name(namespace: str) -> str:
    """The cookie of a namespace: browsers share cookies between the ports of a host."""
    return f"broker_{namespace}"


def may_enter(key: ApiKey) -> bool:
    """Whether a key is a person's who may look: agents and services have the API."""
    return key.principal.kind is PrincipalKind.PERSON and Scope.READ in key.scopes


def sessions_of(broker: AsyncBroker) -> Identify:
    """Knows people by the cookie of their session, on the pages only."""

    async def identify(request: Request) -> Caller | None:
        path, here = f"{request.url.path}/", place(request)
        is_guests = path.startswith(f"{here}/t/")  # there it is the link that counts
        if is_guests or not path.startswith(f"{here}/"):
            return None
        text = request.cookies.get(cookie_name(broker.namespace))
        session = await find(broker, text) if text else None
        if session is None:
            return None
        request.state.session = session
        return Caller(session.key.principal, session.key.scopes, f"key:{session.key.id}")

    return identify


async def find(broker: AsyncBroker, text: str) -> Session | None:
    """The session behind a cookie; None where it is forged or over, or its key counts no more."""
    try:
        signed = await broker.signing.verify(PURPOSE, text)
    except Untrusted:
        return None
    key = await broker.keys.current(str(signed.claims.get("key")))
    if key is None or not may_enter(key) or await broker.signing.is_revoked(_name(signed)):
        return None
    return Session(key, _token(text))


def _name(signed: Signed) -> str:
    """What a session is called among those that were ended."""
    return f"session:{signed.claims.get('nonce')}"


def _token(text: str) -> str:
    """Whoever has only the token cannot make the cookie of it, and other sites can read neither."""
    return hashlib.sha256(b"form\0" + text.encode()).hexdigest()


async def begin(broker: AsyncBroker, request: Request, response: Response, key: ApiKey) -> None:
    """Signs a person in: the cookie counts here only, is sent from our own pages only, and no script reads it."""
    claims = {"key": key.id, "nonce": secrets.token_hex(8)}
    text = await broker.signing.sign(PURPOSE, claims, LASTS)
    response.set_cookie(
        cookie_name(broker.namespace), text, max_age=int(LASTS.total_seconds()), path=place(request),
        secure=request.url.scheme == "https", httponly=True, samesite="strict",
    )  # fmt: skip


async def end(broker: AsyncBroker, request: Request, response: Response) -> None:
    """Signs a person out: a copy of the cookie counts no more either, in any gateway."""
    with contextlib.suppress(Untrusted):  # it is over, or was never ours
        signed = await broker.signing.verify(PURPOSE, request.cookies.get(cookie_name(broker.namespace), ""))
        await broker.signing.revoke(_name(signed), signed.expires_at)
    response.delete_cookie(
        cookie_name(broker.namespace), path=place(request), secure=request.url.scheme == "https",
        httponly=True, samesite="strict",
    )  # fmt: skip


def check_origin(request: Request) -> None:
    """Raises where a form was not sent from one of our own pages."""
    if _place_of(request.headers.get("origin", "")) != request.headers.get("host"):
        raise HTTPException(
            403, "This form did not come from a page of this inbox. Open the page and send it again"
        )


def _place_of(origin: str) -> str | None:
    """The host and port that an origin names; None for one that names none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


async def signed_form(request: Request) -> FormData:
    """The form that a person sent from their own session's page. Raises for any other: nothing is written then."""
    check_origin(request)
    session: Session | None = getattr(request.state, "session", None)
    form = await request.form()
    shown = str(form.get("csrf", ""))
    if session is None or not hmac.compare_digest(shown.encode(), session.token.encode()):
        raise HTTPException(403, "This form is not of your present session. Open the page and send it again")
    return form
