# Generated from broker/_async/hooks.py by tests/tools/unasync.py (make sync): do not edit.
"""Webhooks of a namespace: whom to tell what happens, and what could not be told."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ..core.events import Event
from ..core.fields import from_ms, to_ms
from ..core.hooks import Hook, HookSecret, NewHook, Post, new_hook, new_secret
from ..core.limits import check_id, check_range
from ..errors import InvalidInput, UnknownId
from ..store.commands import hooks
from ..store.keys import Partition
from .events import Events
from .link import Link

CURSOR = "webhooks"
"""The name of the cursor that the sender of a namespace follows."""


class Hooks:
    """The webhooks of a namespace. They are sent by `broker serve --webhooks`, or `WebhookSender`."""

    def __init__(self, link: Link, told: Events) -> None:
        self._link = link
        self._events = told

    def create(
        self,
        url: str,
        *,
        types: Sequence[str] | None = None,
        queue: str | None = None,
        note: str | None = None,
    ) -> NewHook:
        """A new hook, with its secret, which is told once: it gets what happens from now on.

        `types` are of `EventType`; without them it is told what was opened, rung again, settled, and of dead runs. Not
        safe to repeat: each call makes another one. Raises `InvalidInput`.
        """
        p, now = self._place()
        hook = new_hook(url, types, queue, note, now)
        if self._events.position(CURSOR) is None:
            self._events.keep(CURSOR, self._events.cursor())
        self._link.fetch(hooks.put_hook(p, hook))
        return NewHook(hook=hook.public(), secret=hook.secrets[-1].text)

    def list(self) -> tuple[Hook, ...]:
        """Every hook, without its secrets, the oldest first."""
        p, _ = self._place()
        return tuple(one.public() for one in self._link.fetch(hooks.read_hooks(p)))

    def get(self, hook_id: str) -> Hook:
        """One hook, without its secrets. Raises `UnknownId`."""
        return (self._whole(hook_id)).public()

    def delete(self, hook_id: str) -> None:
        """Deletes a hook, with what waits for it. Safe to repeat."""
        check_id("hook_id", hook_id)
        p, _ = self._place()
        self._link.fetch(hooks.drop_hook(p, hook_id))

    def enable(self, hook_id: str) -> Hook:
        """The hook, told again of what happens from now on. Safe to repeat. Raises `UnknownId`."""
        hook = self._whole(hook_id)
        p, now = self._place()
        if hook.disabled_at is not None:
            hook = hook.model_copy(update={"disabled_at": None, "created_at": now})
            self._link.fetch(hooks.put_hook(p, hook))
        return hook.public()

    def rotate(self, hook_id: str, *, overlap: timedelta = timedelta(days=1)) -> NewHook:
        """A new secret for a hook. For `overlap` more, posts are signed with the old one too.

        Not safe to repeat. Raises `UnknownId`.
        """
        if overlap < timedelta():
            raise InvalidInput("overlap", "is below zero", "a span; zero ends the old secret at once")
        hook = self._whole(hook_id)
        p, now = self._place()
        old = [one for one in hook.secrets if one.ends_at is None or one.ends_at > now]
        ends = now + overlap
        kept = [
            one if one.ends_at is not None and one.ends_at < ends else HookSecret(text=one.text, ends_at=ends)
            for one in old
        ]
        fresh = HookSecret(text=new_secret())
        hook = hook.model_copy(update={"secrets": (*kept, fresh)})
        self._link.fetch(hooks.put_hook(p, hook))
        return NewHook(hook=hook.public(), secret=fresh.text)

    def lost(self, hook_id: str, *, limit: int = 50) -> tuple[Post, ...]:
        """What could not be told and was given up, the first one first, each with its last error."""
        check_range("limit", limit, 1, 1000)
        hook = self._whole(hook_id)
        p, _ = self._place()
        ids = self._link.fetch(hooks.read_lost(p, hook.id, limit))
        return self._link.fetch(hooks.read_posts(p, hook.id, ids))

    def replay(self, hook_id: str, *, limit: int = 1000) -> int:
        """Sends again what was given up, the first one first; how much that is. Safe to repeat."""
        again = [one.model_copy(update={"tries": 0}) for one in self.lost(hook_id, limit=limit)]
        p, now = self._place()
        if not again:
            return 0
        return self._link.fetch(hooks.move_posts(p, hook_id, again, ("lost", "due"), to_ms(now)))

    def outbox(self) -> "Outbox":
        """What waits to be sent, for a sender."""
        return Outbox(self._link)

    def _whole(self, hook_id: str) -> Hook:
        check_id("hook_id", hook_id)
        p, _ = self._place()
        found = self._link.fetch(hooks.read_hook(p, hook_id))
        if found is None:
            raise UnknownId("webhook", hook_id)
        return found

    def _place(self) -> tuple[Partition, datetime]:
        now = self._link.now()
        return self._link.space.partition(0), from_ms(now // 1000)


class Outbox:
    """What waits to be sent: the side of the sender."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def now(self) -> datetime:
        """The server's time."""
        return from_ms(self._link.now() // 1000)

    def hooks(self) -> tuple[Hook, ...]:
        """Every hook, with its secrets."""
        return self._link.fetch(hooks.read_hooks(self._place()))

    def put(self, told: Sequence[Event]) -> None:
        """Stores events for each hook that wants them. Safe to repeat."""
        p, now = self._place(), to_ms(self.now())
        for hook in self.hooks():
            posts = [Post(id=one.id, hook_id=hook.id, event=one) for one in told if hook.wants(one)]
            self._link.fetch(hooks.put_posts(p, hook.id, posts, now))

    def due(self, among: Sequence[Hook], most: int) -> dict[str, tuple[str, ...]]:
        """The ids of the posts of each hook that are due."""
        now = to_ms(self.now())
        return self._link.fetch(hooks.read_due(self._place(), [one.id for one in among], now, most))

    def read(self, hook: Hook, ids: Sequence[str]) -> tuple[Post, ...]:
        """Posts by their ids, those that still wait."""
        return self._link.fetch(hooks.read_posts(self._place(), hook.id, ids))

    def arrived(self, post: Post) -> None:
        """Forgets a post."""
        self._link.fetch(hooks.drop_post(self._place(), post.hook_id, post.id))

    def failed(self, post: Post, error: str, pause: timedelta | None) -> None:
        """Notes why a post has not arrived: again after a pause, or, without one, given up."""
        noted = post.model_copy(update={"tries": post.tries + 1, "error": error})
        at = self.now() + (pause or timedelta())
        way = ("due", "due" if pause is not None else "lost")
        self._link.fetch(hooks.move_posts(self._place(), post.hook_id, [noted], way, to_ms(at)))

    def disable(self, hook: Hook) -> None:
        """Tells a hook nothing more: it has said that it is gone."""
        p, now = self._place(), self.now()
        found = self._link.fetch(hooks.read_hook(p, hook.id))  # as it is now: its secrets may have changed
        if found is not None:
            gone = found.model_copy(update={"disabled_at": now})
            self._link.fetch(hooks.put_hook(p, gone))

    def _place(self) -> Partition:
        self._link.open()
        return self._link.space.partition(0)
