"""Signing in and out, and the files of the pages."""

import hashlib
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ..identity import PUBLIC, needs
from ..routes import BrokerOf
from . import session
from .page import HERE, PageRoute, safe_path, show, to

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES: Final = {
    path.name: path.read_bytes() for path in sorted((HERE / "static").iterdir()) if path.is_file()
}


@router.get("/sign-in")
@needs(PUBLIC)
async def sign_in(request: Request, broker: BrokerOf, next: str = "") -> Response:  # noqa: A002 - in the address
    """The page that asks for a key."""
    text = request.cookies.get(session.cookie_name(broker.namespace))
    if text and await session.find(broker, text) is not None:
        return to(request, safe_path(next))
    return show(request, "sign-in.html", next=safe_path(next), said="")


@router.post("/sign-in")
@needs(PUBLIC)
async def enter(request: Request, broker: BrokerOf) -> Response:
    """Begins a session for whoever shows a person's key. The key itself is kept nowhere."""
    session.check_origin(request)
    form = await request.form()
    shown, wanted = str(form.get("key", "")).strip(), safe_path(str(form.get("next", "")))
    key = await broker.keys.find(shown)
    if key is None:
        return _again(request, wanted, "This key does not count: it is unknown, expired or revoked.")
    if not session.may_enter(key):
        what = f"{'an' if key.principal.kind == 'agent' else 'a'} {key.principal.kind}"
        return _again(
            request, wanted, f"This is the key of {what}. The inbox is for people: ask for a key of your own."
        )
    response = to(request, wanted)
    await session.begin(broker, request, response, key)
    return response


def _again(request: Request, wanted: str, said: str) -> HTMLResponse:
    return show(request, "sign-in.html", code=403, next=wanted, said=said)


@router.post("/sign-out")
@needs(PUBLIC)
async def leave(request: Request, broker: BrokerOf) -> RedirectResponse:
    """Ends the session."""
    session.check_origin(request)
    response = to(request, "/sign-in")
    await session.end(broker, request, response)
    return response


@router.get("/static/{name}")
@needs(PUBLIC)
async def file(request: Request, name: str) -> Response:
    """A style sheet, a script or a picture of the pages."""
    if name not in FILES:
        raise HTTPException(404, "There is no such file")
    tag = f'"{hashlib.sha256(FILES[name]).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(FILES[name], media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
