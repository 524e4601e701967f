"""How a page is made: from a template that escapes everything, with headers that let nothing foreign in."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException as AnyHTTPException

from ...core.access import Scope
from ...errors import BrokerError, InvalidInput
from ..routes import broker_of
from . import visible, words
from .session import Session, place

HERE: Final = Path(__file__).parent
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # `no-referrer` would send our own forms without their origin.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TITLES: Final = {401: "Sign in", 403: "Not permitted", 404: "Nothing here", 422: "This does not fit"}

templates: Final = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
templates.globals.update(Scope=Scope, words=words, visible=visible, LONG=visible.LONG)
templates.filters.update(
    ago=words.ago, brief=visible.brief, clock=words.clock, pieces=visible.pieces, plain=visible.plain,
    raw=visible.raw, rows=visible.rows, segment=lambda text: quote(text, safe=""), span=words.span,
    stamp=words.stamp, tojson_text=lambda value: visible.raw(value, indent=None), until=words.until,
)  # fmt: skip


def show(request: Request, template: str, *, code: int = 200, **facts: Any) -> HTMLResponse:
    """A page. What every page needs is added: where it stands, who looks, and what they may do."""
    session: Session | None = getattr(request.state, "session", None)
    caller = getattr(request.state, "caller", None)
    whole = {
        "base": place(request), "namespace": broker_of(request).namespace, "session": session, "caller": caller,
        "csrf": session.token if session else "", "scopes": caller.scopes if caller else frozenset(),
        "path": request.url.path, "fleet": None,
    } | facts  # fmt: skip
    return HTMLResponse(templates.get_template(template).render(whole), code)


def to(request: Request, path: str) -> RedirectResponse:
    """Sends the reader to another page, with GET."""
    return RedirectResponse(f"{place(request)}{path}", 303)


class PageRoute(APIRoute):
    """A route whose faults are pages too, and whose responses let nothing foreign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handle(request)
            except (AnyHTTPException, BrokerError, RequestValidationError) as fault:
                response = refused(request, fault)
            response.headers.update(HEADERS)
            if not request.url.path.startswith(f"{place(request)}/static/"):
                response.headers["Cache-Control"] = "no-store"
            return response

        return answer


def refused(request: Request, fault: Exception) -> Response:
    """The page that tells a fault; whoever is not known is asked to sign in first."""
    match fault:
        case HTTPException() if fault.status_code == 401:  # noqa: PLR2004 - nobody is known to ask
            wanted = f"?{urlencode({'next': wanted_path(request)})}" if request.method == "GET" else ""
            return to(request, f"/sign-in{wanted}")
        case AnyHTTPException():
            code, said = fault.status_code, f"{fault.detail}."
        case InvalidInput():
            code, said = fault.http, f"{fault.field} {fault.problem}; allowed: {fault.allowed}."
        case BrokerError():
            code, said = fault.http, str(fault)
        case _:
            code, said = 422, "The address of this page does not fit."
    return show(request, "fault.html", code=code, title=TITLES.get(code, "This did not work"), said=said)


def wanted_path(request: Request) -> str:
    """The page that was asked for, below the inbox."""
    path = request.url.path.removeprefix(place(request))
    return f"{path}?{request.url.query}" if request.url.query else path


def safe_path(text: str) -> str:
    """A page of ours that a sign-in may lead to; the list for anything else."""
    fits = text.startswith("/") and not text.startswith(("//", "/\\", "/sign-")) and text.isprintable()
    return text if fits else ""
