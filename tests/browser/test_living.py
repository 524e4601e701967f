"""Pages that are open for long: they hear of what others do, outlive the gateway, and stay quick when much waits."""

import socket
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from time import monotonic

import httpx

from broker import Approve, Principal
from broker.testing import RunningServer, await_until
from tests.browser.conftest import Windows
from tests.browser.scenes import ask, equal, refund
from tests.gateway.site import Site

BOB = Principal(id="bob")


async def test_an_open_list_follows_what_others_do(site: Site, windows: Windows) -> None:
    """What is selected and where the keyboard stands survive it."""
    first, second = await equal(site.broker, 2)
    page = await windows.of(site)
    await page.wait_for_selector("#live:has-text('live')")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    third = await ask(site.broker, refund(), "s_3")
    await page.wait_for_selector(f".row[data-id='{third}']")
    assert await page.locator("#picks input:checked").input_value() == first
    assert await page.evaluate("document.activeElement.closest('.row').dataset.id") == first
    await site.broker.inbox.answer(second, Approve(), by=BOB)
    await page.wait_for_selector(f".row[data-id='{second}']", state="detached")
    assert await page.inner_text("#open-count") == "2"
    assert await page.inner_text("#picked") == "1 selected"


async def gateway(url: str, namespace: str, port: int) -> Process:
    """A gateway as a process of its own, once it answers."""
    command = ["-m", "broker", "--url", url, "--namespace", namespace, "serve", "--port", str(port)]
    process = await create_subprocess_exec(sys.executable, *command, stdout=PIPE)

    async def answers() -> bool:
        try:
            async with httpx.AsyncClient() as client:
                return (await client.get(f"http://127.0.0.1:{port}/livez")).status_code == 200
        except httpx.HTTPError:
            return False

    await await_until(answers, timeout=30)
    return process


async def test_a_page_outlives_a_gateway_that_is_killed(
    site: Site, server: RunningServer, windows: Windows
) -> None:
    """Also what was settled meanwhile is seen once another gateway is there."""
    interrupt_id = await ask(site.broker, refund())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await gateway(server.url, site.broker.namespace, port)
    there = Site(site.broker, f"http://127.0.0.1:{port}")
    try:
        page = await windows.of(there)
        await page.goto(f"{there.url}/inbox/i/{interrupt_id}")
        await page.wait_for_selector("#live:has-text('live')")
        process.kill()
        await process.wait()
        await page.wait_for_selector("#live:has-text('reconnecting')")
        await site.broker.inbox.answer(interrupt_id, Approve(), by=BOB)
        process = await gateway(server.url, site.broker.namespace, port)
        await page.wait_for_selector("#end", timeout=20_000)
        assert "Approved by bob" in await page.inner_text("#end")
    finally:
        process.kill()
        await process.wait()


async def test_a_gateway_stops_while_pages_are_open(
    site: Site, server: RunningServer, windows: Windows
) -> None:
    """An open stream does not hold up its end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await gateway(server.url, site.broker.namespace, port)
    try:
        page = await windows.of(Site(site.broker, f"http://127.0.0.1:{port}"))
        await page.wait_for_selector("#live:has-text('live')")
        process.terminate()
        await await_until(lambda: process.returncode is not None, timeout=20)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_ten_thousand_open_questions_stay_quick(site: Site, windows: Windows) -> None:
    """F48: a page of the list costs the same whether ten wait or ten thousand."""
    await equal(site.broker, 10_000)
    page = await windows.of(site)
    assert await page.inner_text("#open-count") == "10,000"
    assert await page.locator(".row").count() == 50
    began = monotonic()
    await page.goto(f"{site.url}/inbox")
    assert monotonic() - began < 3
    first = await page.get_attribute(".row >> nth=0", "data-id")
    await page.click("text=Next page")
    await page.wait_for_url("**cursor=**")
    assert await page.locator(".row").count() == 50
    assert await page.get_attribute(".row >> nth=0", "data-id") != first
    began = monotonic()
    await page.goto(f"{site.url}/inbox?grouped=1")
    assert "200 equal" in await page.inner_text(".row")
    assert monotonic() - began < 5
