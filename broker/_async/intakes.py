"""Webhooks in: who may complete jobs, or answer, by signed requests of their own."""

from datetime import datetime, timedelta

from ..core.answers import Principal
from ..core.fields import from_ms, to_ms
from ..core.hooks import HookSecret, new_secret
from ..core.intakes import Does, Intake, NewIntake
from ..core.limits import check_name
from ..errors import InvalidInput, UnknownId
from ..store.commands import intakes
from ..store.keys import Partition
from .link import Link


class Intakes:
    """The senders whose signed requests count: `POST /v1/intake/<name>` of the gateway."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def create(
        self, name: str, by: Principal, *, does: Does = Does.COMPLETE, to: str = "to", value: str = "value",
        error: str = "error", answer: str = "answer",
    ) -> NewIntake:  # fmt: skip
        """A new intake, with its secret, which is told once. `to` and the rest say where to look in a body.

        Not safe to repeat. Raises `InvalidInput` for a name that is taken, and for an agent that would decide.
        """
        check_name("name", name)
        p, now = await self._place()
        who = by.model_copy(update={"verified": True})
        secret = HookSecret(text=new_secret())
        made = Intake(
            name=name, does=does, by=who, to=to, value=value, error=error, answer=answer, created_at=now,
            secrets=(secret,),
        )  # fmt: skip
        made.check()
        if not await self._link.fetch(intakes.add_intake(p, made)):
            raise InvalidInput("name", f"{name!r} is taken", "a name of its own")
        return NewIntake(intake=made.public(), secret=secret.text)

    async def list(self) -> tuple[Intake, ...]:
        """Every intake, without its secrets, by name."""
        p, _ = await self._place()
        return tuple(one.public() for one in await self._link.fetch(intakes.read_intakes(p)))

    async def delete(self, name: str) -> None:
        """Deletes an intake: its requests count no more. Safe to repeat."""
        check_name("name", name)
        p, _ = await self._place()
        await self._link.fetch(intakes.drop_intake(p, name))

    async def rotate(self, name: str, *, overlap: timedelta = timedelta(days=1)) -> NewIntake:
        """A new secret. The old one counts for `overlap` more. Not safe to repeat. Raises `UnknownId`."""
        if overlap < timedelta():
            raise InvalidInput("overlap", "is below zero", "a span; zero ends the old secret at once")
        found = await self._find(name)
        if found is None:
            raise UnknownId("intake", name)
        p, now = await self._place()
        ends = now + overlap
        kept = [
            HookSecret(text=one.text, ends_at=min(one.ends_at or ends, ends))
            for one in found.secrets if one.ends_at is None or one.ends_at > now
        ]  # fmt: skip
        fresh = HookSecret(text=new_secret())
        found = found.model_copy(update={"secrets": (*kept, fresh)})
        await self._link.fetch(intakes.put_intake(p, found))
        return NewIntake(intake=found.public(), secret=fresh.text)

    async def _find(self, name: str) -> Intake | None:
        """One with its secrets that count now, for the gateway; None where there is none."""
        check_name("name", name)
        p, now = await self._place()
        found = await self._link.fetch(intakes.read_intake(p, name))
        if found is None:
            return None
        good = tuple(one for one in found.secrets if one.ends_at is None or now < one.ends_at)
        return found.model_copy(update={"secrets": good})

    async def _see(self, name: str, request: str, within: timedelta) -> bool:
        """Whether a request comes for the first time within that span."""
        p, now = await self._place()
        return await self._link.fetch(intakes.see(p, name, request, to_ms(now), to_ms(now - within)))

    async def _place(self) -> tuple[Partition, datetime]:
        now = await self._link.now()
        return self._link.space.partition(0), from_ms(now // 1000)
