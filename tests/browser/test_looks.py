"""Every page at both widths, light and dark: nothing that axe objects to, nothing wider than the window."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

from broker.core.access import ApiRole
from tests.browser.conftest import DESK, PHONE, Windows
from tests.browser.scenes import ask, equal, morning, triage
from tests.gateway.site import Site
from tests.gateway.test_inbox_pages import dead_run
from tests.gateway.test_inbox_safety import hostile_pause

LOOKS = {
    "desk": (DESK, "light"),
    "dark": (DESK, "dark"),
    "phone": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}


async def check_looks(page: Page, name: str) -> None:
    """Raises for what a person with a screen reader, a keyboard or a small window would trip over."""
    found = (await Axe().run(page)).response["violations"]
    assert [(name, one["id"], one["nodes"][0]["html"][:120]) for one in found] == []
    width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{name} is {width} px too wide"


@pytest.mark.parametrize("look", LOOKS)
async def test_every_page_looks_right(
    site: Site, windows: Windows, picture: Callable[..., Any], look: str
) -> None:
    (size, scheme), broker = LOOKS[look], site.broker
    card = f"/inbox/i/{await morning(broker)}"
    form = await ask(broker, triage(), "s_form")
    await dead_run(broker)
    picks = "&".join(f"pick={one}" for one in await equal(broker, 3))
    token = (await broker.tokens.create(form, "decide")).text
    page = await windows.open(site.url, size=size, color_scheme=scheme)
    await check_looks(page, "sign-in")
    await picture(page, f"{look}-sign-in")
    page = await windows.of(site, role=ApiRole.OPERATOR, size=size, color_scheme=scheme)
    for name, path in (
        ("inbox", "/inbox"), ("grouped", "/inbox?grouped=1"), ("nothing", "/inbox?tool=none"),
        ("card", card), ("conversation", f"{card}?conversation=1"), ("edit", f"{card}/edit"),
        ("edit-json", f"{card}/edit?as=json"), ("form", f"/inbox/i/{form}"), ("batch", f"/inbox/batch?{picks}"),
        ("session", "/inbox/sessions/chat-20418"), ("dead", "/inbox/dead"), ("fleet", "/inbox/fleet"),
        ("guest", f"/inbox/t/{token}"), ("fault", "/inbox/i/none"),
    ):  # fmt: skip
        await page.goto(f"{site.url}{path}")
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        await check_looks(page, name)
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
        await picture(page, f"{look}-{name}")
    await page.goto(f"{site.url}{card}")
    await page.click("button:has-text('Approve')")
    await page.wait_for_selector("#end")
    await check_looks(page, "settled")
    await picture(page, f"{look}-settled")


async def test_the_list_of_keys_opens_and_closes(site: Site, windows: Windows) -> None:
    page = await windows.of(site)
    await page.keyboard.press("?")
    await page.wait_for_selector("#keys[open]")
    await check_looks(page, "keys")
    await page.keyboard.press("Escape")
    await page.wait_for_selector("#keys[open]", state="detached")


async def test_stored_scripts_do_nothing_in_a_browser(site: Site, windows: Windows) -> None:
    """A dialog, a request to elsewhere, a complaint of the browser or a page that grows wide would fail this."""
    interrupt_id = await hostile_pause(site.broker)
    page = await windows.of(site, size=PHONE)
    for path in ("/inbox", f"/inbox/i/{interrupt_id}?conversation=1", f"/inbox/i/{interrupt_id}/edit",
                 f"/inbox/batch?pick={interrupt_id}"):  # fmt: skip
        await page.goto(f"{site.url}{path}")
        await check_looks(page, path)
