"""What Prometheus scrapes. It names queues and agents, so it wants a key, unless the settings say otherwise."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from ...core.access import Scope
from ..identity import PUBLIC, needs


def metrics_route(*, public: bool) -> APIRouter:
    """The route, for holders of a key that may read, or for everybody."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", include_in_schema=False)
    @needs(PUBLIC if public else Scope.READ)
    async def metrics(request: Request) -> Response:
        """All metrics of this gateway, in the text format of Prometheus."""
        return Response(await request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
