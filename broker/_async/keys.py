"""API keys: who may use a namespace from outside, what they may do, and until when."""

from datetime import datetime, timedelta

from ..core.access import ApiKey, ApiRole, NewKey, check_role, new_secret, read_secret
from ..core.answers import Principal
from ..core.fields import from_ms
from ..core.limits import check_id
from ..errors import InvalidInput, UnknownId
from ..store.commands import credentials
from ..store.keys import Partition
from .link import Link


class Keys:
    """The API keys of a namespace. What is changed counts at the next request, in every process."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def create(
        self,
        principal: Principal,
        role: ApiRole,
        *,
        expires_in: timedelta | None = None,
        note: str | None = None,
    ) -> NewKey:
        """A new key for somebody; its text is told once. Not safe to repeat: each call makes another key.

        Raises `InvalidInput` for a role that such a party must not have: an agent never decides.
        """
        check_role(role, principal)
        if expires_in is not None and expires_in <= timedelta():
            raise InvalidInput("expires_in", "is not after now", "a span above zero, or None for no end")
        p, now = await self._place()
        secret = new_secret()
        ends = now + expires_in if expires_in is not None else None
        who = principal.model_copy(update={"verified": True})
        key = ApiKey(id=secret.id, role=role, principal=who, note=note, created_at=now, expires_at=ends)
        await self._link.fetch(credentials.put_key(p, key, secret.digest))
        return NewKey(key=key, text=secret.text)

    async def find(self, text: str) -> ApiKey | None:
        """The key that somebody shows, where it counts now; None for a forged, revoked, expired or unknown one."""
        shown = read_secret(text)
        if shown is None:
            return None
        p, now = await self._place()
        found = await self._link.fetch(credentials.read_key(p, *shown))
        return found[0] if found is not None and found[0].is_good(now) else None

    async def get(self, key_id: str) -> ApiKey:
        """One key by its id, whatever its state. Raises `UnknownId`."""
        return (await self._known(key_id))[0]

    async def list(self) -> tuple[ApiKey, ...]:
        """Every key, those that were revoked or have expired included, the oldest first."""
        p, _ = await self._place()
        return await self._link.fetch(credentials.read_keys(p))

    async def revoke(self, key_id: str) -> ApiKey:
        """The key as it is now: it counts no more, from the next request on. Safe to repeat. Raises `UnknownId`."""
        key, digest = await self._known(key_id)
        if key.revoked_at is None:
            p, now = await self._place()
            key = key.model_copy(update={"revoked_at": now})
            await self._link.fetch(credentials.put_key(p, key, digest))
        return key

    async def _known(self, key_id: str) -> tuple[ApiKey, bytes]:
        check_id("key_id", key_id)
        p, _ = await self._place()
        found = await self._link.fetch(credentials.read_key(p, key_id))
        if found is None:
            raise UnknownId("key", key_id)
        return found

    async def _place(self) -> tuple[Partition, datetime]:
        """Where keys lie, and the server's time."""
        await self._link.open()
        return self._link.space.partition(0), from_ms(self._link.server_now() // 1000)
