"""Where a webhook may lead: public addresses, unless others were allowed; resolved once, and used as resolved."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HIDING: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))
)
"""Ways to write an address of version 4 inside one of version 6: nobody needs them here."""


class NotAllowed(httpx.TransportError):
    """An address is not public, and was not allowed."""


class PinnedTransport(httpx.AsyncBaseTransport):
    """Looks a name up, checks every address behind it, and connects to one of those and to nothing else.

    A name that means another address a moment later gains nothing. Connections are not kept: two names may share an
    address, and each has to show its own certificate.
    """

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)
        limits = httpx.Limits(max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(limits=limits, trust_env=False, retries=0)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request. Raises `NotAllowed`, and what the transport raises."""
        name = request.url.host
        address = await self._address(
            name, request.url.port or (443 if request.url.scheme == "https" else 80)
        )
        request.extensions["sni_hostname"] = name
        request.url = request.url.copy_with(host=str(address))
        return await self._inner.handle_async_request(request)

    async def _address(self, name: str, port: int) -> Address:
        loop = asyncio.get_running_loop()
        try:
            rows = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"the name cannot be resolved: {error}") from None
        found = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows]
        for one in found:
            if not self._may(one):
                raise NotAllowed(f"{one} is not a public address")
        return found[0]

    def _may(self, one: Address) -> bool:
        plain = one.ipv4_mapped or one if isinstance(one, ipaddress.IPv6Address) else one
        if any(plain.version == net.version and plain in net for net in self._allowed):
            return True
        hides = isinstance(plain, ipaddress.IPv6Address) and any(plain in net for net in _HIDING)
        return plain.is_global and not plain.is_multicast and not hides

    async def aclose(self) -> None:
        """Closes what is open."""
        await self._inner.aclose()
