"""Who asks, and what they may do: every route is denied until it says which scope it needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, HTTPException, Request

from .._async.client import AsyncBroker
from ..core.access import Scope
from ..core.answers import Principal

F = TypeVar("F", bound=Callable[..., Any])

_NEEDS: Final = "__broker_needs__"
PUBLIC: Final = "public"
"""What a route needs that everybody may use: it tells nothing of the namespace."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, as proved by a credential, and what they may do."""

    principal: Principal
    scopes: frozenset[Scope]
    credential: str
    """Which credential it was, by its id: what rates are counted by, and what is on record."""


Identify = Callable[[Request], Awaitable[Caller | None]]
"""Says who sent a request, by one sort of credential; None where the request shows none of that sort."""


def needs(scope: Scope | str) -> Callable[[F], F]:
    """Marks an endpoint with the scope it needs, or `PUBLIC`. One without a mark is denied to everybody."""

    def mark(endpoint: F) -> F:
        setattr(endpoint, _NEEDS, scope)
        return endpoint

    return mark


def needed(endpoint: Callable[..., Any]) -> Scope | str | None:
    """The scope that an endpoint was marked with; None where it was not."""
    return getattr(endpoint, _NEEDS, None)


def keys_of(broker: AsyncBroker) -> Identify:
    """Knows people, agents and services by their API keys: `Authorization: Bearer brk_...`."""

    async def identify(request: Request) -> Caller | None:
        sort, _, shown = request.headers.get("authorization", "").partition(" ")
        if sort.lower() != "bearer" or not shown.startswith("brk_"):
            return None
        key = await broker.keys.find(shown.strip())
        if key is None:
            raise unauthenticated("This key does not count: it is unknown, expired or revoked")
        return Caller(key.principal, key.scopes, f"key:{key.id}")

    return identify


def unauthenticated(detail: str) -> HTTPException:
    """Nobody is known to ask."""
    return HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="broker"'})


async def guard(request: Request) -> Caller | None:
    """The one check of all routes: who asks, and whether the route lets them. None on public routes."""
    scope = needed(request.scope["endpoint"])
    if scope == PUBLIC:
        return None
    caller: Caller | None = None
    for identify in request.app.state.identifies:
        caller = await identify(request)
        if caller is not None:
            break
    if caller is None:
        raise unauthenticated("Send an API key: Authorization: Bearer brk_...")
    if scope is None or scope not in caller.scopes:
        raise HTTPException(
            403, f"This needs the scope {scope or 'of nobody'}, which {caller.principal.id!r} has not"
        )
    request.state.caller = caller
    return caller


def caller_of(request: Request) -> Caller:
    """Who asks, once the guard has let them in."""
    caller: Caller = request.state.caller
    return caller


CallerOf = Annotated[Caller, Depends(caller_of)]
