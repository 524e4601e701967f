"""The numbers of a gateway: each with its unit, and what stands for it."""

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What one gateway process allows; the defaults are those of the documentation."""

    max_body: int = 1024 * KIB
    """The largest body of a request, in bytes."""
