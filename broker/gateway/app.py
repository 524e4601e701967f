"""The application: routes, who may use them, and how faults are told."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import Depends, FastAPI

from .._async.client import AsyncBroker
from ..telemetry import Tracer
from . import inbox
from .identity import Identify, guard, keys_of, tokens_of
from .limits import BodyLimit, Heads
from .metrics import Metrics
from .openapi import describe
from .problems import install
from .requests import Requests
from .routes import completions, events, fleet, health, intake, interrupts, metrics, runs
from .settings import GatewaySettings

ROUTERS = (
    health.router, interrupts.router, interrupts.answers, completions.router, completions.heartbeats, runs.router,
    runs.sessions, fleet.router, fleet.dead, fleet.keys, events.router, intake.router,
)  # fmt: skip


def create_app(
    broker: AsyncBroker,
    *,
    settings: GatewaySettings | None = None,
    identify: Sequence[Identify] = (),
) -> FastAPI:
    """The gateway of one namespace, an ASGI application: serve it, or mount it in yours.

    Everybody has to show an API key or a token of the namespace, or what one of `identify` knows them by. The broker
    is the caller's to close.
    """

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncGenerator[None]:
        await broker.open()
        yield

    app = FastAPI(
        title="broker", version=version("interrupt-broker"), docs_url=None, redoc_url=None,
        openapi_url="/openapi.json", lifespan=opened, dependencies=[Depends(guard)],
    )  # fmt: skip
    app.state.broker = broker
    app.state.settings = settings or GatewaySettings()
    app.state.identifies = (keys_of(broker), tokens_of(broker), *identify)
    app.state.refusals = Counter()
    app.state.drains = False
    app.state.streams = events.Streams(app.state.settings.streams, app.state.settings.streams_per_caller)
    install(app)
    describe(app, ROUTERS)
    app.add_middleware(BodyLimit, most=app.state.settings.max_body)
    app.add_middleware(Heads)
    _watch(app, broker)
    for router in (*ROUTERS, metrics.metrics_route(public=app.state.settings.public_metrics)):
        app.include_router(router)
    inbox.install(app)
    return app


def _watch(app: FastAPI, broker: AsyncBroker) -> None:
    """Counts, logs and traces what the application does."""
    app.state.metrics = Metrics(broker, app.state.settings.metrics_seconds)

    def tracer() -> Tracer | None:
        observer = broker._link.observer  # noqa: SLF001 - the same house
        return observer if isinstance(observer, Tracer) else None

    app.add_middleware(Requests, meter=app.state.metrics.meter, tracer=tracer)
