"""A person at the inbox without a browser: signed in, reading pages and sending their forms."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx

from broker.core.access import ApiRole

from .site import Site


class Person:
    """One session."""

    def __init__(self, site: Site, client: httpx.AsyncClient) -> None:
        self.site = site
        self.client = client

    async def see(self, path: str = "/inbox", *, code: int = 200) -> str:
        """A page."""
        reply = await self.client.get(path)
        assert reply.status_code == code, told(reply.text)[:500]
        return reply.text

    async def send(self, path: str, *, page: str, code: int = 200, **fields: Any) -> str:
        """The page that comes of a form, with what its own page hides in it."""
        shown = await self.see(page)
        form = {"csrf": hidden(shown, "csrf"), **fields}
        if 'name="seen"' in shown:
            form.setdefault("seen", hidden(shown, "seen"))
        reply = await self.client.post(path, data=form, follow_redirects=True)
        assert reply.status_code == code, told(reply.text)[:500]
        return reply.text

    async def answer(self, interrupt_id: str, kind: str, *, code: int = 200, **fields: Any) -> str:
        """The card after an answer."""
        card = f"/inbox/i/{interrupt_id}"
        return await self.send(f"{card}/answer", code=code, page=card, kind=kind, **fields)


def hidden(page: str, name: str) -> str:
    """A hidden field of a page."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, told(page)[:500]
    return unescape(found[1])


def told(page: str) -> str:
    """The words of a page, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.partition("<main")[2])).split())


@asynccontextmanager
async def person(
    site: Site, who: str = "ada", role: ApiRole = ApiRole.REVIEWER, *, groups: tuple[str, ...] = ()
) -> AsyncGenerator[Person]:
    """Somebody who has signed in."""
    key = await site.key(who, role, groups=groups)
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}, timeout=20) as client:
        entered = await client.post("/inbox/sign-in", data={"key": key})
        assert entered.status_code == 303, told(entered.text)
        yield Person(site, client)
