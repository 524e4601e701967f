"""Who asks, and what they may do: every route is denied until it says which scope it needs."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, HTTPException, Request

from .._async.client import AsyncBroker
from ..core.access import PREFIX as KEY
from ..core.access import Scope, may_decide
from ..core.answers import AnswerKind, Principal
from ..core.entries import TOKEN as CALL_TOKEN
from ..core.tokens import PREFIX as TOKEN
from ..core.tokens import Token
from ..errors import Untrusted

log: logging.Logger = logging.getLogger("broker.gateway")

F = TypeVar("F", bound=Callable[..., Any])

_NEEDS: Final = "__broker_needs__"
_OWN: Final = "__broker_own__"
COMPLETING: Final = (AnswerKind.COMPLETE, AnswerKind.FAIL)
"""The answers that tell how a job ended, and decide nothing."""
PUBLIC: Final = "public"
"""What a route needs that everybody may use: it tells nothing of the namespace."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, as proved by a credential, and what they may do."""

    principal: Principal
    scopes: frozenset[Scope]
    credential: str
    """Which credential it was, by its id: what rates are counted by, and what is on record."""
    token: Token | None = None
    """Where the credential is a token: the one interrupt or call, and the purpose, that the caller is limited to."""


Identify = Callable[[Request], Awaitable[Caller | None]]
"""Says who sent a request, by one sort of credential; None where the request shows none of that sort."""


def needs(scope: Scope | str, *, own: bool = False) -> Callable[[F], F]:
    """Marks an endpoint with the scope it needs, or `PUBLIC`. One without a mark is denied to everybody.

    `own`: it acts on nothing but what the caller's token is for. Holders of a token are let into these, and into those
    whose path names their `interrupt_id`.
    """

    def mark(endpoint: F) -> F:
        setattr(endpoint, _NEEDS, scope)
        setattr(endpoint, _OWN, own)
        return endpoint

    return mark


def needed(endpoint: Callable[..., Any]) -> Scope | str | None:
    """The scope that an endpoint was marked with; None where it was not."""
    return getattr(endpoint, _NEEDS, None)


def bearer(request: Request) -> str:
    """What a request shows as `Authorization: Bearer ...`; empty where it shows nothing of that sort."""
    sort, _, shown = request.headers.get("authorization", "").partition(" ")
    return shown.strip() if sort.lower() == "bearer" else ""


def keys_of(broker: AsyncBroker) -> Identify:
    """Knows people, agents and services by their API keys: `Authorization: Bearer brk_...`."""

    async def identify(request: Request) -> Caller | None:
        shown = bearer(request)
        if not shown.startswith(KEY):
            return None
        key = await broker.keys.find(shown)
        if key is None:
            raise unauthenticated("This key does not count: it is unknown, expired or revoked")
        return Caller(key.principal, key.scopes, f"key:{key.id}")

    return identify


def tokens_of(broker: AsyncBroker) -> Identify:
    """Knows outsiders by a token made for one interrupt or call: `Authorization: Bearer brt_...`, or a call's own."""

    async def identify(request: Request) -> Caller | None:
        shown = bearer(request)
        if not shown.startswith((TOKEN, CALL_TOKEN)):
            return None
        try:
            token = await broker.tokens.verify(shown)
        except Untrusted as refused:
            raise unauthenticated(str(refused)) from None
        return Caller(token.principal, token.scopes, f"token:{token.id}", token)

    return identify


def unauthenticated(detail: str) -> HTTPException:
    """Nobody is known to ask."""
    return HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="broker"'})


async def guard(request: Request) -> Caller | None:
    """The one check of all routes: who asks, and whether the route lets them. None on public routes.

    Who is refused is on record: in the log, and counted by status in `app.state.refusals`.
    """
    endpoint = request.scope["endpoint"]
    if needed(endpoint) == PUBLIC:
        return None
    caller: Caller | None = None
    try:
        caller = await _identified(request)
        _check(caller, endpoint, request.path_params)
        await _spend(request, caller)
    except HTTPException as refused:
        request.app.state.refusals[refused.status_code] += 1
        route, who = request.scope["route"].path, caller.credential if caller is not None else "nobody"
        log.warning(
            "refused %s %s to %s (%d): %s", request.method, route, who, refused.status_code, refused.detail
        )
        raise
    request.state.caller = caller
    return caller


async def _identified(request: Request) -> Caller:
    for identify in request.app.state.identifies:
        caller: Caller | None = await identify(request)
        if caller is not None:
            return caller
    raise unauthenticated("Send an API key or a token: Authorization: Bearer brk_...")


async def is_still_let_in(request: Request) -> bool:
    """Whether the guard would let a caller in again that it has let in: streams last longer than credentials do."""
    try:
        _check(await _identified(request), request.scope["endpoint"], request.path_params)
    except HTTPException:
        return False
    return True


def _check(caller: Caller, endpoint: Callable[..., Any], path: dict[str, Any]) -> None:
    """Raises where this caller may not use this route: the scope, the one thing of a token, and no agent decides."""
    scope, who = needed(endpoint), caller.principal
    if scope is None or scope not in caller.scopes:
        raise HTTPException(403, f"This needs the scope {scope or 'of nobody'}, which {who.id!r} has not")
    if scope == Scope.ANSWER and not may_decide(who):
        raise HTTPException(403, f"{who.id!r} is of kind {who.kind}, which never decides")
    if caller.token is None or getattr(endpoint, _OWN, False):
        return
    only = caller.token.about.interrupt_id
    if only is None or path.get("interrupt_id") != only:
        raise HTTPException(403, "This token is for one interrupt or call, and not for this")


async def _spend(request: Request, caller: Caller) -> None:
    """Counts one more request of a credential, at all gateways of the namespace. Raises 429 where they are too many."""
    most = request.app.state.settings.requests_per_minute
    if most and caller.credential:
        used = await request.app.state.broker.keys.count(caller.credential)
        if used.times > most:
            left = used.seconds_left
            policy, now = f'"requests";q={most};w=60', f'"requests";r=0;t={left}'
            headers = {"Retry-After": str(left), "RateLimit-Policy": policy, "RateLimit": now}
            raise HTTPException(429, f"More than {most} requests of this credential in a minute", headers)


def check_answers(caller: Caller, kind: str) -> None:
    """Raises where this caller may not give that kind of answer: a job's end is told by those who may complete."""
    if kind in COMPLETING and Scope.COMPLETE not in caller.scopes:
        raise HTTPException(
            403, f"To {kind} needs the scope {Scope.COMPLETE}, which {caller.principal.id!r} has not"
        )


def caller_of(request: Request) -> Caller:
    """Who asks, once the guard has let them in."""
    caller: Caller = request.state.caller
    return caller


CallerOf = Annotated[Caller, Depends(caller_of)]
