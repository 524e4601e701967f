"""The numbers of a gateway: each with its unit, and what stands for it."""

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What one gateway process allows; the defaults are those of the documentation."""

    max_body: int = 1024 * KIB
    """The largest body of a request, in bytes."""
    request_seconds: float = 30.0
    """How long a request may take, in seconds; streams of events may take longer."""
    requests_per_minute: int = 1200
    """How many requests one credential may send in a minute, at all gateways of a namespace together; 0: any number."""
    public_metrics: bool = False
    """Whether `/metrics` is for everybody who reaches the gateway; else for keys that may read."""
    metrics_seconds: float = 5.0
    """How old the levels at `/metrics` may be, in seconds: a storm of scrapes costs the server one reading in that."""
    notice_seconds: float = 2.0
    """How long a gateway that was told to end says so at `/readyz` and still takes requests, in seconds."""
    drain_seconds: float = 20.0
    """How long requests that are open then may take to end, in seconds."""
    streams_per_caller: int = 20
    """How many streams of events one credential may have open at a gateway."""
    streams: int = 1000
    """How many streams of events may be open at a gateway."""
