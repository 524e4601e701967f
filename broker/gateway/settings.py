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
    """How many requests one credential may send in a minute, at all gateways of the namespace together; 0: any number."""
    streams_per_caller: int = 20
    """How many streams of events one credential may have open at a gateway."""
    streams: int = 1000
    """How many streams of events may be open at a gateway."""
