"""Tokens for outsiders: one interrupt or call, one purpose, and no longer than the question itself.

A token is `brt_` and a signed text. Whoever has it can read what it says, and do what it is for; nobody can make one.
"""

import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import Field, StrictBool

from ..errors import InvalidInput, Untrusted
from .access import Scope, check_may_decide
from .answers import Principal, PrincipalKind
from .fields import Id, Instant
from .limits import JSON
from .models import Audience, OnExpiry
from .records import InterruptRecord
from .shape import Model
from .signing import Signed
from .states import Settlement

PREFIX: Final = "brt_"
PURPOSE: Final = "token"
"""What the texts are signed for; which of the purposes below is said inside."""
LONGEST: Final = timedelta(days=90)
"""How long a token may count at most."""
USUAL: Final = timedelta(days=1)
"""How long one counts whose question has no deadline."""


class Purpose(StrEnum):
    """What a token is for."""

    DECIDE = "decide"
    """Look at one interrupt and answer it."""
    COMPLETE = "complete"
    """Tell the result of one job, that it failed, or that it still runs."""
    HEARTBEAT = "heartbeat"
    """Tell that one job still runs."""


SCOPES: Final[dict[Purpose, frozenset[Scope]]] = {
    Purpose.DECIDE: frozenset({Scope.READ, Scope.ANSWER}),
    Purpose.COMPLETE: frozenset({Scope.COMPLETE, Scope.BEAT}),
    Purpose.HEARTBEAT: frozenset({Scope.BEAT}),
}
"""What the holder of a token may do, with the one thing it is for."""


class About(Model):
    """What a token is for: one interrupt, or one call of a run's journal, by its session, run and call id."""

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupt_id", "session_id", "run_id", "call_id")

    interrupt_id: Id | None = None
    session_id: Id | None = None
    run_id: Id | None = None
    call_id: Id | None = None


class Token(Model):
    """What a token says. `principal` is who acts with it; a single-use one counts while its interrupt is open."""

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "purpose", "about", "principal", "expires_at")

    id: Id
    purpose: Purpose
    about: About
    principal: Principal
    single_use: StrictBool = False
    expires_at: Instant | None = None

    @property
    def scopes(self) -> frozenset[Scope]:
        """What its holder may do, with what it is for and nothing else."""
        return SCOPES[self.purpose]

    def allows(self, purpose: Purpose) -> bool:
        """Whether it is good for that purpose: its own, and one that completes also tells that the job runs."""
        return SCOPES[purpose] <= self.scopes

    def claims(self) -> dict[str, JSON]:
        """What is signed. When it was made and ends is set by what signs."""
        said = self.to_json()
        assert isinstance(said, dict)  # noqa: S101 - as all of them
        said.pop("expires_at_ms", None)
        return said

    @classmethod
    def of(cls, signed: Signed) -> "Token":
        """The token behind a signed text. Raises `Untrusted` where it is of another version."""
        try:
            token = cls.from_json(dict(signed.claims))
        except InvalidInput as fault:
            problem = f"{fault.field} {fault.problem}"
        else:
            return token.model_copy(update={"expires_at": signed.expires_at})
        raise Untrusted(PURPOSE, problem)


class NewToken(Model):
    """A token that was just made. `text` is told here once and kept nowhere."""

    SHOWN: ClassVar[tuple[str, ...]] = ("token",)

    token: Token
    text: str = Field(repr=False)


def new_token(purpose: Purpose, about: About, holder: Principal | None, *, single_use: bool) -> Token:
    """A token that nobody has had. Raises `InvalidInput` where such a party must not have it."""
    name = secrets.token_hex(8)
    who = holder or Principal(id=f"token:{name}", kind=PrincipalKind.SERVICE)
    if purpose is Purpose.DECIDE:
        check_may_decide("for_", who)
    if single_use and about.interrupt_id is None:
        raise InvalidInput("single_use", "is for tokens of an interrupt", "False for one of a call")
    who = who.model_copy(update={"verified": True})
    return Token(id=name, purpose=purpose, about=about, principal=who, single_use=single_use)


def check_purpose(record: InterruptRecord, purpose: Purpose) -> None:
    """Raises `InvalidInput` where an interrupt is settled, or nobody answers it in that way."""
    if record.state is not Settlement.OPEN:
        raise InvalidInput("to", f"is {record.state}", "an open interrupt")
    if (purpose is Purpose.DECIDE) == (record.interrupt.addressed_to is Audience.COMPLETIONS):
        fits = "decide" if purpose is not Purpose.DECIDE else "complete, heartbeat"
        raise InvalidInput("purpose", f"{purpose} is for other interrupts than this one", fits)


def ends_at(record: InterruptRecord) -> datetime | None:
    """When an interrupt ends by itself; None where it waits for ever, and its deadline is a reminder."""
    return record.deadline if record.interrupt.at_expiry != OnExpiry.WAIT else None


def span(wanted: timedelta | None, deadline: datetime | None, now: datetime) -> timedelta:
    """How long a token counts: no longer than its question waits. Raises `InvalidInput` for what is no such span."""
    if wanted is not None and not timedelta() < wanted <= LONGEST:
        raise InvalidInput("expires_in", "is out of range", f"above zero, up to {LONGEST.days} days")
    if deadline is None:
        return wanted or USUAL
    left = min(deadline - now, LONGEST)
    return min(wanted, left) if wanted is not None else left
