"""The inbox: pages on which people decide. They work without scripts, and are live with them.

    install(app)        # the pages under /inbox, and the sessions of those who read them

Agents write most of what the pages show: it is text there, never markup, and no page loads anything from elsewhere.
"""

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse

from ..identity import PUBLIC, needs
from . import deciding, entering, guests, live, looking
from .page import PageRoute, to
from .session import PREFIX, sessions_of

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
@needs(PUBLIC)
async def front(request: Request) -> RedirectResponse:
    """Whoever types the address of the gateway finds the inbox."""
    return to(request, "")


def install(app: FastAPI) -> None:
    """Adds the pages to a gateway. Only they know people by their sessions, and outsiders by their links."""
    broker = app.state.broker
    app.state.identifies = (*app.state.identifies, sessions_of(broker), guests.guests_of(broker))
    app.include_router(router)
    for part in (entering.router, guests.router, live.router, deciding.router, looking.router):
        app.include_router(part, prefix=PREFIX)


__all__ = ["PREFIX", "install"]
