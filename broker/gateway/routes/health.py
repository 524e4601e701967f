"""Whether this process lives, and whether it can work. Both tell nothing of the namespace."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from ...errors import BrokerError
from ..identity import PUBLIC, needs
from . import BrokerOf

router: APIRouter = APIRouter(tags=["health"])
PATIENCE: Final = 2.0
"""How long the server may take, in seconds: who probes does not wait for as long as a caller does."""


@router.get("/livez")
@needs(PUBLIC)
async def livez() -> dict[str, str]:
    """It answers, so it lives."""
    return {"state": "live"}


@router.get("/readyz")
@needs(PUBLIC)
async def readyz(request: Request, broker: BrokerOf) -> JSONResponse:
    """Whether it takes requests: 503 where the server does not answer, or it is about to end. It costs a small read."""
    if request.app.state.drains:
        return JSONResponse({"state": "draining"}, 503)
    try:
        async with asyncio.timeout(PATIENCE):
            await broker.active("readyz")
    except TimeoutError:
        return JSONResponse({"state": "timeout"}, 503)
    except BrokerError as error:
        return JSONResponse({"state": error.code}, 503)
    return JSONResponse({"state": "ready"})
