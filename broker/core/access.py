"""Who may use a namespace from outside: API keys, what each role may do, and how a key is written and checked.

A key is `brk_` and its id, then `_` and its secret. Only a digest of the secret is kept. The secret is as random as a
signature (256 bits), so a plain hash keeps it: there is nothing to guess.
"""

import hashlib
import re
import secrets
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from ..errors import InvalidInput
from .answers import Principal, PrincipalKind
from .fields import Id, Instant, Text
from .shape import Model

PREFIX: Final = "brk_"
_SHAPE: Final = re.compile(r"brk_([a-z0-9]{16})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """One thing that a key may do."""

    READ = "read"
    """List and show interrupts, runs, history and the fleet."""
    START = "start"
    """Start runs, and withdraw them."""
    ANSWER = "answer"
    """Decide: approve, edit, reject, respond, cancel."""
    COMPLETE = "complete"
    """Tell the result of a job done elsewhere, or that it failed."""
    BEAT = "beat"
    """Tell that a job done elsewhere still runs."""
    OPERATE = "operate"
    """Dead letters, queues, keys."""


class ApiRole(StrEnum):
    """What a key is for: a set of scopes."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    AGENT = "agent"
    SERVICE = "service"
    OPERATOR = "operator"

    @property
    def scopes(self) -> frozenset[Scope]:
        """What it may do."""
        return SCOPES[self]


SCOPES: Final[dict[ApiRole, frozenset[Scope]]] = {
    ApiRole.VIEWER: frozenset({Scope.READ}),
    ApiRole.REVIEWER: frozenset({Scope.READ, Scope.ANSWER}),
    ApiRole.AGENT: frozenset({Scope.READ, Scope.START}),
    ApiRole.SERVICE: frozenset({Scope.START, Scope.COMPLETE, Scope.BEAT}),
    ApiRole.OPERATOR: frozenset(Scope),
}
"""What each role may do. No role lets an agent decide: see `check_role`."""
_DECIDE: Final = (PrincipalKind.PERSON, PrincipalKind.SERVICE)


def check_role(role: ApiRole, principal: Principal) -> None:
    """Raises `InvalidInput` for a role that this sort of party must not have: an agent never decides (F43)."""
    if not may_decide(principal) and Scope.ANSWER in role.scopes:
        may = ", ".join(one for one in ApiRole if Scope.ANSWER not in one.scopes)
        raise InvalidInput("role", f"{role} decides, and {principal.id!r} is of kind {principal.kind}", may)


def may_decide(principal: Principal) -> bool:
    """Whether a party may decide at all, whatever credential it shows: an agent never does (F43)."""
    return principal.kind in _DECIDE


def check_may_decide(field: str, principal: Principal) -> None:
    """Raises `InvalidInput` for a party that never decides."""
    if not may_decide(principal):
        raise InvalidInput(field, f"is of kind {principal.kind}, which never decides", ", ".join(_DECIDE))


class ApiKey(Model):
    """One key as stored, without its secret. `principal` is who acts with it, and counts as verified."""

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "role", "principal", "expires_at", "revoked_at")

    id: Id
    role: ApiRole
    principal: Principal
    note: Text | None = None
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    retires_at: Instant | None = None
    """Until when it counts after a rotation has put another one in its place."""
    replaces: Id | None = None
    """The key that it was made in the place of, by a rotation."""

    @property
    def scopes(self) -> frozenset[Scope]:
        """What it may do."""
        return self.role.scopes

    def is_good(self, now: datetime) -> bool:
        """Whether it counts at that moment: neither revoked, expired nor retired."""
        ends = (self.expires_at, self.retires_at)
        return self.revoked_at is None and all(one is None or now < one for one in ends)


class NewKey(Model):
    """A key that was just made. `text` is told here once and kept nowhere: only a digest of it is stored."""

    SHOWN: ClassVar[tuple[str, ...]] = ("key",)

    key: ApiKey
    text: str


class Used(NamedTuple):
    """How often a credential was used in the present span, this use included, and when the span ends."""

    times: int
    seconds_left: int


class Secret(NamedTuple):
    """A new key's id and text, and what is kept of it."""

    id: str
    text: str
    digest: bytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


def new_secret() -> Secret:
    """A key that nobody has had."""
    name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return Secret(name, f"{PREFIX}{name}_{secret}", digest_of(secret))


def read_secret(text: str) -> tuple[str, str] | None:
    """The id and the secret of a key as it is sent; None for what is none."""
    found = _SHAPE.fullmatch(text)
    return (found[1], found[2]) if found else None


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()
