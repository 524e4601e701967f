"""A real browser (Debian's Chromium) on a real gateway: whatever it complains of or asks of others fails the test."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright

from broker import AsyncBroker
from broker.core.access import ApiRole
from broker.testing import RunningServer
from tests.gateway.site import Site, serving

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ARTEFACTS = Path(__file__).parent / "artefacts"
DESK, PHONE = (1280, 800), (390, 844)
EXPECTED = (
    "status of 4",
    "ERR_CONNECTION_REFUSED",
    "ERR_INCOMPLETE_CHUNKED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_CONTENT_LENGTH_MISMATCH",
)
"""What the console says of refusals and of a gateway that was killed."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        yield broker


@pytest.fixture
async def site(broker: AsyncBroker) -> AsyncGenerator[Site]:
    async with serving(broker) as site:
        yield site


@pytest.fixture
async def chromium() -> AsyncGenerator[Browser]:
    """The browser. It is part of what root installs: a machine without it fails here."""
    path = os.environ.get("BROKER_TEST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


class Windows:
    """Opens windows, each of a person of their own, and keeps what went wrong in them."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self.faults: list[str] = []
        self.strangers: list[str] = []

    async def context(self, size: tuple[int, int] = DESK, **options: Any) -> BrowserContext:
        """An empty profile."""
        viewport: Any = {"width": size[0], "height": size[1]}
        context = await self._chromium.new_context(viewport=viewport, **options)
        context.set_default_timeout(20_000)
        return context

    async def open(self, url: str, *, size: tuple[int, int] = DESK, **options: Any) -> Page:
        """A page of an empty profile."""
        page = await (await self.context(size, **options)).new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))
        page.on(
            "request", lambda asked: None if asked.url.startswith(url) else self.strangers.append(asked.url)
        )
        await page.goto(url)
        return page

    async def of(
        self, site: Site, who: str = "ada", role: ApiRole = ApiRole.REVIEWER, **options: Any
    ) -> Page:
        """A page of somebody who signed in by pasting their key."""
        page = await self.open(site.url, **options)
        await page.fill("#key", await site.key(who, role, groups=("refunds",)))
        await page.press("#key", "Enter")
        await page.wait_for_selector(".me")
        await page.wait_for_load_state()  # the script has run
        return page

    def _console(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not any(word in said.text for word in EXPECTED):
            self.faults.append(said.text)


@pytest.fixture
async def windows(chromium: Browser) -> AsyncGenerator[Windows]:
    """Windows of this test. Nothing that a page loads may fail, be forbidden, or come from elsewhere."""
    made = Windows(chromium)
    yield made
    assert made.faults == []
    assert made.strangers == []


@pytest.fixture
def picture() -> Callable[..., Any]:
    """Keeps a screenshot of a page, for people to look at."""
    ARTEFACTS.mkdir(exist_ok=True)

    async def take(page: Page, name: str, *, whole: bool = True) -> Path:
        path = ARTEFACTS / f"{name}.png"
        await page.screenshot(path=path, full_page=whole, animations="disabled")
        return path

    return take
