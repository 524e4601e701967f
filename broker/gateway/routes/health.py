"""Whether this process lives, and whether it can work. Both tell nothing of the namespace."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...errors import BrokerError
from ..identity import PUBLIC, needs
from . import BrokerOf

router: APIRouter = APIRouter(tags=["health"])


@router.get("/livez")
@needs(PUBLIC)
async def livez() -> dict[str, str]:
    """It answers, so it lives."""
    return {"state": "live"}


@router.get("/readyz")
@needs(PUBLIC)
async def readyz(broker: BrokerOf) -> JSONResponse:
    """Whether the server of the namespace can be reached; 503 where it cannot."""
    try:
        await broker.open()
        await broker.keys.list()
    except BrokerError as error:
        return JSONResponse({"state": error.code}, 503)
    return JSONResponse({"state": "ready"})
