"""People decide in a browser: each sort of answer, by mouse and by keyboard, alone and against one another."""

import sys
from asyncio import create_subprocess_exec

from broker import Approve, Edit, Principal, Reject, Respond, Settlement
from broker.core.answers import Answer
from broker.testing import RunningServer
from tests.browser.conftest import Windows
from tests.browser.scenes import REFUND, ask, equal, morning, refund, triage
from tests.gateway.site import Site


async def answer_of(site: Site, interrupt_id: str) -> Answer | None:
    """The answer that counts."""
    found = (await site.broker.inbox.get(interrupt_id)).resolution
    return found.answer if found is not None else None


async def test_a_person_signs_in_filters_and_signs_out(site: Site, windows: Windows) -> None:
    await morning(site.broker)
    page = await windows.open(site.url)
    await page.fill("#key", "brk_wrong")
    await page.press("#key", "Enter")
    await page.wait_for_selector("text=does not count")
    page = await windows.of(site)
    assert await page.locator(".row").count() == 11
    await page.select_option("select[name=kind]", "custom")  # sent by itself
    await page.wait_for_url("**/inbox?kind=custom")
    assert await page.locator(".row").count() == 3
    await page.click("text=Clear")
    await page.wait_for_url("**/inbox")
    await page.keyboard.press("/")
    await page.keyboard.type("send_voucher")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/inbox?tool=send_voucher")
    assert await page.locator(".row").count() == 5
    await page.click("text=Sign out")
    await page.wait_for_selector("#key")
    await page.goto(f"{site.url}/inbox")
    assert "/sign-in" in page.url


async def test_a_call_is_approved_by_keyboard_with_two_strokes(site: Site, windows: Windows) -> None:
    interrupt_id = await ask(site.broker, refund())
    page = await windows.of(site)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#decide")
    await page.wait_for_load_state()
    await page.keyboard.press("a")  # only goes to the button
    assert await page.evaluate("document.activeElement.dataset.key") == "a"
    assert (await site.broker.inbox.get(interrupt_id)).state is Settlement.OPEN
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#end")
    await page.wait_for_load_state()
    assert "Approved by ada" in await page.inner_text("#end")
    assert await answer_of(site, interrupt_id) == Approve()
    await page.keyboard.press("n")
    await page.wait_for_selector("text=Nothing waits for you")


async def test_a_call_is_rejected_with_a_reason(site: Site, windows: Windows) -> None:
    interrupt_id = await ask(site.broker, refund())
    page = await windows.of(site)
    await page.goto(f"{site.url}/inbox/i/{interrupt_id}")
    await page.keyboard.press("r")
    await page.keyboard.type("Paid twice already.\nAsk again tomorrow.")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_selector("#end")
    assert await answer_of(site, interrupt_id) == Reject(reason="Paid twice already.\nAsk again tomorrow.")


async def test_F17_arguments_are_edited_and_the_difference_is_shown_first(
    site: Site, windows: Windows
) -> None:
    interrupt_id = await ask(site.broker, refund())
    page = await windows.of(site)
    await page.goto(f"{site.url}/inbox/i/{interrupt_id}")
    await page.keyboard.press("e")
    await page.fill("[name='arguments.cents']", "42130")
    await page.fill("[name='arguments.passengers']", "Ines Moreau")
    await page.check("[name='arguments.notify'][value=false]")
    await page.click("text=Show the difference")
    await page.wait_for_selector(".diff")
    shown = [" ".join(line.split()) for line in await page.locator(".diff tbody tr").all_inner_texts()]
    assert shown[0] == "cents 84260 42130"
    assert len(shown) == 3
    assert await answer_of(site, interrupt_id) is None
    await page.click("text=Approve with these changes")
    await page.wait_for_selector("#end .diff")
    changed = {"cents": 42130, "passengers": ["Ines Moreau"], "notify": False}
    assert await answer_of(site, interrupt_id) == Edit(arguments=REFUND | changed)


async def test_F16_a_form_made_of_the_schema_is_filled_in(site: Site, windows: Windows) -> None:
    interrupt_id = await ask(site.broker, triage())
    page = await windows.of(site)
    await page.goto(f"{site.url}/inbox/i/{interrupt_id}")
    await page.get_by_label("rebooking").check()
    await page.get_by_role("group", name="Urgent").get_by_label("no").check()
    await page.get_by_label("Minutes needed").fill("4")
    await page.get_by_label("Phone").fill("+49 89 1")
    await page.click("button:has-text('Respond')")
    await page.wait_for_selector(".faulty, .fault, #banner")
    assert "payload.minutes" in await page.inner_text("#banner")
    assert await page.get_by_label("rebooking").is_checked()
    await page.get_by_label("Minutes needed").fill("45")
    await page.click("button:has-text('Respond')")
    await page.wait_for_selector("#end")
    expected = {"team": "rebooking", "urgent": False, "minutes": 45, "contact": {"phone": "+49 89 1"}}
    assert await answer_of(site, interrupt_id) == Respond(payload=expected)


async def test_F34_equal_calls_are_decided_together(site: Site, windows: Windows) -> None:
    ids = await equal(site.broker, 6)
    page = await windows.of(site)
    for _ in range(3):
        await page.keyboard.press("j")
        await page.keyboard.press("x")
    assert await page.inner_text("#picked") == "3 selected"
    await page.click("text=Decide together")
    await page.wait_for_selector("text=They are equal")
    await site.broker.inbox.answer(ids[0], Reject(reason="no"), by=Principal(id="bob"))
    await page.click("text=Approve all")
    await page.wait_for_selector(".outcomes")
    assert "2 of 3 approved" in await page.inner_text("h1")
    assert "bob was first: rejected" in await page.inner_text(".outcomes .bad")
    await page.goto(f"{site.url}/inbox?grouped=1")
    assert "3 equal" in await page.inner_text(".row")


async def test_F11_two_people_race_on_one_card_and_one_is_told_who_was_first(
    site: Site, windows: Windows
) -> None:
    """RA18. Bob has no script, so that his card stays open; it works all the same."""
    interrupt_id = await ask(site.broker, refund())
    ada = await windows.of(site, "ada")
    bob = await windows.of(site, "bob", java_script_enabled=False)
    for page in (ada, bob):
        await page.goto(f"{site.url}/inbox/i/{interrupt_id}")
    await ada.click("button:has-text('Approve')")
    await ada.wait_for_selector("#end")
    await bob.click("summary:has-text('Reject')")
    await bob.fill("#w-reason", "too much")
    await bob.click("button:has-text('Reject')")
    await bob.wait_for_selector("#banner")
    assert "ada was first: approved" in await bob.inner_text("#banner")
    assert "Approved by ada" in await bob.inner_text("#end")
    assert await answer_of(site, interrupt_id) == Approve()


async def test_an_answer_from_a_terminal_closes_the_card_within_a_second(
    site: Site, server: RunningServer, windows: Windows
) -> None:
    """Beyond 18: a decision in any channel closes all others. What was being written is not lost unsaid."""
    interrupt_id = await ask(site.broker, refund())
    page = await windows.of(site)
    await page.goto(f"{site.url}/inbox/i/{interrupt_id}")
    await page.wait_for_selector("#live:has-text('live')")
    await page.keyboard.press("r")
    await page.keyboard.type("I am still thin")
    await page.evaluate(
        """() => { window.closed = new Promise((done) => new MutationObserver(() => {
        if (document.querySelector("#end")) done(Date.now());
        }).observe(document.body, { childList: true, subtree: true })); }"""
    )
    options = ["--url", server.url, "--namespace", site.broker.namespace, "--as", "carol"]
    terminal = await create_subprocess_exec(sys.executable, "-m", "broker", *options, "approve", interrupt_id)
    assert await terminal.wait() == 0
    closed = float(await page.evaluate("() => window.closed"))
    found = (await site.broker.inbox.get(interrupt_id)).resolution
    assert found is not None
    assert closed / 1000 - found.at.timestamp() < 1
    assert "Approved by carol, while you looked. What you had written was not sent." in await page.inner_text(
        ".banner"
    )
