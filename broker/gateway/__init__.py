"""The HTTP gateway, floor 4: lists, shows and answers interrupts for programs of any language, and for people.

    app = create_app(broker)              # an ASGI application, to be served or mounted
    broker serve --host 0.0.0.0           # the same, as a process

Needs the extra `gateway`. It keeps no state of its own: any number of them may stand behind any balancer.
"""

from importlib.util import find_spec

from ..errors import MissingExtra

if any(
    find_spec(name) is None
    for name in ("fastapi", "uvicorn", "jinja2", "jwt", "multipart", "prometheus_client", "sse_starlette")
):
    raise MissingExtra("gateway", "The HTTP gateway")

from .app import create_app
from .identity import Caller, Identify
from .settings import GatewaySettings

__all__ = ["Caller", "GatewaySettings", "Identify", "create_app"]
