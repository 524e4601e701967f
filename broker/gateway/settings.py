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
