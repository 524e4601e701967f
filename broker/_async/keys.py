"""API keys: who may use a namespace from outside, what they may do, and until when."""

from datetime import datetime, timedelta

from ..core.access import ApiKey, ApiRole, NewKey, Used, check_role, new_secret, read_secret
from ..core.answers import Principal
from ..core.fields import from_ms, to_ms
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
        _check_span("expires_in", expires_in)
        p, now = await self._place()
        ends = now + expires_in if expires_in is not None else None
        return await self._put(p, principal, role, note, now, ends)

    async def rotate(self, key_id: str, *, overlap: timedelta = timedelta(days=1)) -> NewKey:
        """A new key in the place of another one: of the same party, role and note, and it ends as late.

        The old one counts for `overlap` more, so that every process can be given the new one meanwhile. Not safe to
        repeat. Raises `UnknownId`, and `InvalidInput` for a key that counts no more or was rotated already.
        """
        if overlap < timedelta():
            raise InvalidInput("overlap", "is below zero", "a span; zero ends the old key at once")
        old = await self.get(key_id)
        p, now = await self._place()
        if not old.is_good(now) or old.retires_at is not None:
            problem = "was rotated already" if old.retires_at is not None else "counts no more"
            raise InvalidInput("key_id", problem, "a key that is good, or the one that took its place")
        return await self._put(
            p, old.principal, old.role, old.note, now, old.expires_at, replaces=old.id, until=now + overlap
        )

    async def find(self, text: str) -> ApiKey | None:
        """The key that somebody shows, where it counts now; None for a forged, revoked, expired or unknown one."""
        shown = read_secret(text)
        if shown is None:
            return None
        p, now = await self._place()
        found = await self._link.fetch(credentials.read_key(p, *shown))
        return found if found is not None and found.is_good(now) else None

    async def current(self, key_id: str) -> ApiKey | None:
        """The key of that id, where it counts now by the server's clock; None for any other."""
        p, now = await self._place()
        found = await self._link.fetch(credentials.read_key(p, key_id))
        return found if found is not None and found.is_good(now) else None

    async def get(self, key_id: str) -> ApiKey:
        """One key by its id, whatever its state. Raises `UnknownId`."""
        check_id("key_id", key_id)
        p, _ = await self._place()
        found = await self._link.fetch(credentials.read_key(p, key_id))
        if found is None:
            raise UnknownId("key", key_id)
        return found

    async def list(self) -> tuple[ApiKey, ...]:
        """Every key, those that were revoked or have expired included, the oldest first."""
        p, _ = await self._place()
        return await self._link.fetch(credentials.read_keys(p))

    async def revoke(self, key_id: str) -> ApiKey:
        """The key as it is now: it counts no more, from the next request on. Safe to repeat. Raises `UnknownId`."""
        key = await self.get(key_id)
        p, now = await self._place()
        await self._link.fetch(credentials.revoke_key(p, key.id, to_ms(now)))
        return await self.get(key_id)

    async def count(self, credential: str, *, within: timedelta = timedelta(minutes=1)) -> Used:
        """Counts one more use of a credential, and tells how often it was used in the present span of that length.

        The count is that of all processes of the namespace. It is no record: a server that lost it counts anew.
        """
        p, now = await self._place()
        return await self._link.fetch(credentials.count_use(p, credential, now, within))

    async def _put(
        self, p: Partition, principal: Principal, role: ApiRole, note: str | None, now: datetime,
        ends: datetime | None, *, replaces: str | None = None, until: datetime | None = None,
    ) -> NewKey:  # fmt: skip
        secret = new_secret()
        who = principal.model_copy(update={"verified": True})
        key = ApiKey(
            id=secret.id,
            role=role,
            principal=who,
            note=note,
            created_at=now,
            expires_at=ends,
            replaces=replaces,
        )
        last = to_ms(until) if until is not None else None
        await self._link.fetch(credentials.put_key(p, key, secret.digest, last))
        return NewKey(key=key, text=secret.text)

    async def _place(self) -> tuple[Partition, datetime]:
        """Where keys lie, and the server's time."""
        now = await self._link.now()
        return self._link.space.partition(0), from_ms(now // 1000)


def _check_span(field: str, span: timedelta | None) -> None:
    if span is not None and span <= timedelta():
        raise InvalidInput(field, "is not after now", "a span above zero, or None for no end")
