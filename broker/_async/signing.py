"""Signed texts of a namespace, such as tokens for outsiders and the sessions of people: made and verified anywhere.

The keys lie on the server, so every gateway verifies what another one signed, also after all of them were replaced.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from ..core import signing
from ..core.fields import from_ms, to_ms
from ..core.limits import JSON, check_id, check_name
from ..core.signing import Signed, SigningKey
from ..errors import InvalidInput, UnknownId
from ..store.commands import credentials
from ..store.keys import Partition
from .link import Link


class Signing:
    """What a namespace signs, and the keys it does that with. The first key is made at the first use."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def sign(self, purpose: str, claims: Mapping[str, JSON], expires_in: timedelta) -> str:
        """A text that says `claims`, for one purpose, until `expires_in` from now has passed (in whole seconds).

        Anybody can read it, only this namespace can make it. Raises `InvalidInput`, `MissingExtra`.
        """
        check_name("purpose", purpose)
        if expires_in < timedelta(seconds=1):
            raise InvalidInput("expires_in", "is too short", "a second or more")
        keys = await self.keys()
        key = keys[-1] if keys else await self._add(1)
        now = from_ms(await self._link.now() // 1000)
        return signing.sign(key, self._link.namespace, purpose, claims, now, now + expires_in)

    async def verify(self, purpose: str, text: str) -> Signed:
        """What a text says that was signed here for that purpose. Raises `Untrusted` for anything else.

        It counts with every key that was not dropped. Nothing is written.
        """
        keys = await self.keys()
        now = from_ms(await self._link.now() // 1000)
        return signing.verify(keys, self._link.namespace, purpose, text, now)

    async def revoke(self, name: str, until: datetime) -> None:
        """Notes that a signed text counts no more, by a name that is its own; forgotten after `until`, when it ends.

        Whoever verifies such texts asks `is_revoked`. Safe to repeat. Raises `InvalidInput`.
        """
        check_id("name", name)
        p = await self._place()
        now = await self._link.now() // 1000
        await self._link.fetch(credentials.revoke(p, name, to_ms(until), now))

    async def is_revoked(self, name: str) -> bool:
        """Whether the signed text of that name was taken back."""
        return await self._link.fetch(credentials.is_revoked(await self._place(), name))

    async def keys(self) -> tuple[SigningKey, ...]:
        """The keys, the one that signs last; none before the first use."""
        return await self._link.fetch(credentials.read_signing_keys(await self._place()))

    async def rotate(self) -> SigningKey:
        """A new key, which signs from now on, in every process; the others go on verifying until they are dropped.

        Several calls at once make one key.
        """
        keys = await self.keys()
        return await self._add(keys[-1].number + 1 if keys else 1)

    async def _add(self, number: int) -> SigningKey:
        """The newest key, after one of that number was made, unless somebody else was first."""
        made = SigningKey.new(number, from_ms(await self._link.now() // 1000))
        await self._link.fetch(credentials.add_signing_key(await self._place(), made))
        return (await self.keys())[-1]

    async def drop(self, number: int) -> SigningKey:
        """The key that verifies no more, from now on. Raises `UnknownId`, and `InvalidInput` for the one that signs."""
        keys = await self.keys()
        for key in keys[:-1]:
            if key.number == number:
                await self._link.fetch(credentials.drop_signing_key(await self._place(), number))
                return key
        if keys and keys[-1].number == number:
            raise InvalidInput("number", "is that of the key that signs", "an older one, after a rotation")
        raise UnknownId("signing key", str(number))

    async def _place(self) -> Partition:
        await self._link.open()
        return self._link.space.partition(0)


__all__ = ["Signed", "Signing", "SigningKey"]
