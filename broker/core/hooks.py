"""Webhooks: whom to tell what happened, and what waits to be told. Signed after the Standard Webhooks convention."""

import base64
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, Final

from pydantic import Field, StrictInt

from ..errors import InvalidInput
from .events import Event, EventType
from .fields import Few, Id, Instant, Name, Text
from .shape import Model

SECRET: Final = "whsec_"  # noqa: S105 - what a secret begins with
MOST_URL: Final = 2048
MOST_PORT: Final = 65535
_URL: Final = re.compile(
    r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>\d{1,5}))?([/?][\x21-\x7e]*)?", re.ASCII
)
USUAL: Final = (EventType.OPENED, EventType.REMINDED, EventType.SETTLED, EventType.DEAD)
"""What is sent where nothing else was asked for."""
PAUSES: Final = tuple(timedelta(seconds=one) for one in (5, 60, 300, 1800, 7200, 18000, 36000, 36000))
"""How long is waited after each failed attempt; after the last one a post is a dead letter."""


class HookSecret(Model):
    """One secret that posts are signed with. After a rotation the old one signs beside the new one for a while."""

    SHOWN: ClassVar[tuple[str, ...]] = ("ends_at",)

    text: str = Field(repr=False)
    ends_at: Instant | None = None


class Hook(Model):
    """An address that is told what happens, by signed requests. `secrets`: the one that signs for good comes last."""

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "url", "types", "queue", "created_at", "disabled_at")

    id: Id
    url: str
    types: Few
    queue: Name | None = None
    note: Text | None = None
    created_at: Instant
    disabled_at: Instant | None = None
    """Since when nothing is sent: the address has said that it is gone (410)."""
    secrets: tuple[HookSecret, ...] = ()

    def public(self) -> "Hook":
        """The same without its secrets, as it is listed."""
        return self.model_copy(update={"secrets": ()})

    def signs_with(self, now: datetime) -> tuple[str, ...]:
        """The secrets that count now."""
        return tuple(one.text for one in self.secrets if one.ends_at is None or now < one.ends_at)

    def wants(self, event: Event) -> bool:
        """Whether it is told of an event: from when it was made on, and always of a gap."""
        if self.disabled_at is not None or event.at < self.created_at:
            return False
        if event.type == EventType.GAP:
            return True
        return event.type in self.types and self.queue in (None, event.queue)


class NewHook(Model):
    """A hook that was just made or given a new secret. `secret` is told here once."""

    SHOWN: ClassVar[tuple[str, ...]] = ("hook",)

    hook: Hook
    secret: str = Field(repr=False)


class Post(Model):
    """One event on its way to one address. Its id is that of the event: a receiver knows a repeat by it."""

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "hook_id", "tries")

    id: Id
    hook_id: Id
    event: Event
    tries: StrictInt = 0
    error: Text | None = None


def new_hook(
    url: str, types: Iterable[str] | None, queue: str | None, note: str | None, now: datetime
) -> Hook:
    """A hook that nobody has had. Raises `InvalidInput`."""
    wanted = tuple(types) if types is not None else tuple(map(str, USUAL))
    for one in wanted:
        if one not in set(EventType):
            raise InvalidInput("types", f"names {one!r}, which is none", ", ".join(EventType))
    if not wanted:
        raise InvalidInput("types", "is empty", "one type or more, or none given for the usual ones")
    return Hook(
        id=f"hook_{secrets.token_hex(8)}", url=check_url(url), types=wanted, queue=queue, note=note, created_at=now,
        secrets=(HookSecret(text=new_secret()),),
    )  # fmt: skip


def new_secret() -> str:
    """A secret as the convention writes it: 32 random bytes."""
    return SECRET + base64.b64encode(secrets.token_bytes(32)).decode()


def check_url(url: str) -> str:
    """`url`, an address that may be posted to. Raises `InvalidInput`; where it leads is looked at when it is used."""
    found = _URL.fullmatch(url)
    problem = ""
    if len(url) > MOST_URL:
        problem = f"has {len(url)} characters"
    elif found is None or int(found["port"] or 0) > MOST_PORT:
        problem = "is no web address"
    if problem:
        allowed = f"https://host/path, up to {MOST_URL} characters, without a name and password"
        raise InvalidInput("url", problem, allowed)
    return url
