"""The inbox as pages, without a script: signing in, the list, the card, each sort of answer, and who is told what."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from broker import (
    Action,
    AnswerKind,
    AsyncBroker,
    Complete,
    Edit,
    Fail,
    Interrupt,
    Principal,
    Reject,
    Respond,
    Settlement,
)
from broker.core.access import ApiRole
from broker.gateway import create_app
from broker.gateway.inbox import session, words
from broker.testing import await_until
from tests.browser.scenes import REFUND, TRIAGE, ask, equal, morning, refund, triage

from .person import hidden, person, told
from .site import Site


def typed(way: str, **fields: str) -> dict[str, Any]:
    """What is typed into a box, and how it is meant."""
    return {"as": way, **fields}


async def answer_of(broker: AsyncBroker, interrupt_id: str) -> object:
    """The answer that counts; None while it is open."""
    found = (await broker.inbox.get(interrupt_id)).resolution
    return found.answer if found is not None else None


async def test_whoever_is_not_known_is_asked_to_sign_in_and_comes_back(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    headers = {"Origin": site.url}
    async with httpx.AsyncClient(base_url=site.url, headers=headers, follow_redirects=True) as client:
        page = await client.get(f"/inbox/i/{interrupt_id}")
        assert page.url.path == "/inbox/sign-in"
        assert "issue_refund" not in page.text
        back = await client.post(
            "/inbox/sign-in", data={"key": await site.key(), "next": hidden(page.text, "next")}
        )
        assert back.url.path == f"/inbox/i/{interrupt_id}"
        assert "issue_refund" in back.text
        assert (await client.get("/")).url.path == "/inbox"
        left = await client.post("/inbox/sign-out")
        assert left.url.path == "/inbox/sign-in"
        assert (await client.get("/inbox")).url.path == "/inbox/sign-in"


@pytest.mark.parametrize(
    "next_", ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "x"]
)
async def test_a_sign_in_leads_to_our_own_pages_only(site: Site, next_: str) -> None:
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}) as client:
        entered = await client.post("/inbox/sign-in", data={"key": await site.key(), "next": next_})
        assert (entered.status_code, entered.headers["location"]) == (303, "/inbox")


async def test_F43_keys_of_agents_and_services_do_not_open_the_inbox(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}) as client:
        for role, kind in ((ApiRole.AGENT, "agent"), (ApiRole.SERVICE, "service")):
            refused = await client.post(
                "/inbox/sign-in", data={"key": await site.key("bot", role, kind=kind)}
            )
            assert (refused.status_code, "for people" in refused.text) == (403, True)
        refused = await client.post("/inbox/sign-in", data={"key": "brk_0123456789abcdef_" + "x" * 43})
        assert (refused.status_code, "does not count" in refused.text) == (403, True)
        assert not client.cookies


async def test_the_session_ends_with_its_key_at_once(site: Site) -> None:
    async with person(site) as ada:
        await ada.see()
        (key,) = await site.broker.keys.list()
        await site.broker.keys.revoke(key.id)
        gone = await ada.client.get("/inbox")
        assert (gone.status_code, gone.headers["location"]) == (303, "/inbox/sign-in?next=")


async def test_the_cookie_is_strict_and_counts_for_the_pages_only(site: Site) -> None:
    """The JSON API takes no cookie, so no other site can use one there."""
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}) as client:
        entered = await client.post("/inbox/sign-in", data={"key": await site.key()})
        cookie = entered.headers["set-cookie"].lower()
        for word in ("httponly", "samesite=strict", "path=/inbox", "max-age="):
            assert word in cookie
        assert "brk_" not in cookie
        text = entered.cookies[session.cookie_name(site.broker.namespace)]
        forced = {"Cookie": f"{session.cookie_name(site.broker.namespace)}={text}"}
        assert (await client.get("/v1/interrupts", headers=forced)).status_code == 401
        assert (await client.get("/inbox", headers=forced)).status_code == 200
        forged = {"Cookie": f"{session.cookie_name(site.broker.namespace)}={text[:-2]}xx"}
        client.cookies.clear()
        assert (await client.get("/inbox", headers=forged)).status_code == 303


async def test_the_cookie_is_secure_under_https(site: Site) -> None:
    """As a proxy on the same machine tells that it ended TLS."""
    headers = {"Origin": site.url, "X-Forwarded-Proto": "https"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers) as client:
        entered = await client.post("/inbox/sign-in", data={"key": await site.key()})
        assert "; secure" in entered.headers["set-cookie"].lower()


async def test_it_works_where_an_application_has_mounted_it(broker: AsyncBroker) -> None:
    interrupt_id = await ask(broker, refund())
    outer = Starlette(routes=[Mount("/approvals", create_app(broker))])
    there = httpx.ASGITransport(outer)
    headers = {"Origin": "http://site"}
    async with httpx.AsyncClient(
        transport=there, base_url="http://site", headers=headers, follow_redirects=True
    ) as ada:
        page = await ada.get(f"/approvals/inbox/i/{interrupt_id}")
        assert page.url.path == "/approvals/inbox/sign-in"
        key = (await broker.keys.create(Principal(id="ada"), ApiRole.REVIEWER)).text
        page = await ada.post(page.url.path, data={"key": key, "next": hidden(page.text, "next")})
        assert page.url.path == f"/approvals/inbox/i/{interrupt_id}"
        form = {"kind": "approve", "seen": hidden(page.text, "seen"), "csrf": hidden(page.text, "csrf")}
        assert f'action="{page.url.path}/answer"' in page.text
        assert "Approved by ada" in told((await ada.post(f"{page.url.path}/answer", data=form)).text)
        assert (await ada.get("/approvals/inbox/static/inbox.css")).status_code == 200


@pytest.mark.report("RA29", "RA30")
async def test_F13_a_card_whose_time_is_over_says_so_and_how_to_ask_again(site: Site) -> None:
    """RA29: late is told as late, never as a rejection."""
    interrupt_id = await ask(site.broker, refund(expires_in=timedelta(milliseconds=300)))
    async with person(site) as ada:
        page = await ada.see(f"/inbox/i/{interrupt_id}")
        form = {"kind": "approve", "seen": hidden(page, "seen"), "csrf": hidden(page, "csrf")}

        async def is_late() -> bool:
            found = await site.broker.inbox.get(interrupt_id)
            return found.deadline is not None and found.deadline < words.now() - timedelta(milliseconds=100)

        await await_until(is_late)
        late = await ada.client.post(f"/inbox/i/{interrupt_id}/answer", data=form)
        assert (late.status_code, "Its time was over" in told(late.text)) == (410, True)
        page = told(await ada.see(f"/inbox/i/{interrupt_id}"))
        assert "This is not a rejection" in page
        assert "To have it asked again" in page


async def test_F48_the_list_is_filtered_and_says_what_it_holds(site: Site) -> None:
    await morning(site.broker)
    async with person(site, groups=("refunds",)) as ada:
        page = await ada.see()
        assert page.count('class="row"') == 11
        assert 'id="open-count">11<' in page
        for query, count in (
            ("tool=send_voucher", 5), ("kind=custom", 3), ("label=weather", 1), ("mine=1", 1), ("queue=agents", 11),
            ("queue=nobody", 0), ("age=5m", 0), ("tool=send_voucher&label=weather", 0),
        ):  # fmt: skip
            assert (await ada.see(f"/inbox?{query}")).count('class="row"') == count, query
        assert "No open question fits" in await ada.see("/inbox?tool=nothing")
        grouped = await ada.see("/inbox?grouped=1")
        assert grouped.count('class="row"') == 7
        assert "5 equal" in told(grouped)
        assert "is none that this list gave" in await ada.see("/inbox?cursor=x", code=422)


async def test_an_empty_inbox_says_what_to_do(site: Site) -> None:
    async with person(site) as ada:
        page = told(await ada.see())
        assert "Nothing waits for you" in page
        assert site.broker.namespace in page
        assert "No worker has registered" in page


@pytest.mark.report("RA40")
async def test_the_card_shows_what_will_run_and_who_says_so(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund(), "chat-1")
    async with person(site) as ada:
        page = await ada.see(f"/inbox/i/{interrupt_id}")
        words = told(page)
        record = await site.broker.inbox.get(interrupt_id)
        for text in (
            "issue_refund", "B-7KQ2", "84260", "Ines Moreau", record.digest, record.run_id, "chat-1",
            "customer:ines.moreau", "refunds-over-500", "then it is denied", "recorded", "claimed",
        ):  # fmt: skip
            assert text in words
        assert "My flight" not in words
        assert "My flight" in told(await ada.see(f"/inbox/i/{interrupt_id}?conversation=1"))
        assert "Nothing" in await ada.see("/inbox/i/int_0000000000000000000000", code=404)


@pytest.mark.report("RB65")
async def test_the_questions_of_one_pause_are_shown_together(site: Site) -> None:
    """The run waits for all of them: whoever answers one is led to the others, and sees which are done."""
    calls = [Interrupt.approval(Action(tool=f"book_{name}", arguments={}), name) for name in ("car", "room")]
    car, room = (await site.broker.suspend("travel", *calls, session="s")).interrupt_ids
    alone = await ask(site.broker, refund(), "s_2")
    async with person(site) as ada:
        page = await ada.see(f"/inbox/i/{car}")
        assert f"/inbox/i/{room}" in page
        assert "Asked together" in told(page)
        await ada.answer(car, "approve")
        assert "book_car resolved" in " ".join(told(await ada.see(f"/inbox/i/{room}")).split())
        assert "Asked together" not in await ada.see(f"/inbox/i/{alone}")


async def test_F10_F15_approve_and_reject_are_by_whoever_signed_in(site: Site) -> None:
    async with person(site) as ada:
        first = await ask(site.broker, refund(), "s_1")
        assert "Approved by ada" in told(await ada.answer(first, "approve", note="fine"))
        found = (await site.broker.inbox.get(first)).resolution
        assert found is not None
        assert found.by is not None
        assert (found.by.id, found.by.verified, found.kind) == ("ada", True, AnswerKind.APPROVE)
        second = await ask(site.broker, refund(), "s_2")
        assert "This is needed" in await ada.answer(second, "reject", code=422, reason="  ")
        assert (await site.broker.inbox.get(second)).state is Settlement.OPEN
        await ada.answer(second, "reject", reason="twice paid")
        assert await answer_of(site.broker, second) == Reject(reason="twice paid")


@pytest.mark.report("RA18")
async def test_F11_the_loser_is_told_who_was_first_when_and_with_what(site: Site) -> None:
    """RA18: two people decide one card."""
    interrupt_id = await ask(site.broker, refund())
    async with person(site, "ada") as ada, person(site, "bob") as bob:
        csrf = hidden(await bob.see(f"/inbox/i/{interrupt_id}"), "csrf")
        seen = hidden(await bob.see(f"/inbox/i/{interrupt_id}"), "seen")
        await ada.answer(interrupt_id, "approve")
        late = await bob.client.post(
            f"/inbox/i/{interrupt_id}/answer",
            data={"csrf": csrf, "seen": seen, "kind": "reject", "reason": "no"},
        )
        assert late.status_code == 409
        words = told(late.text)
        assert "ada was first: approved" in words
        assert "Your answer did not count" in words


async def test_an_answer_to_something_else_than_was_shown_is_refused(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    async with person(site) as ada:
        said = told(await ada.answer(interrupt_id, "approve", code=422, seen="1:" + "0" * 64))
        assert "seen" in said
        assert await answer_of(site.broker, interrupt_id) is None


async def test_F17_an_edit_is_shown_before_it_is_sent(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    card = f"/inbox/i/{interrupt_id}"
    form: dict[str, Any] = {
        "arguments.booking": "B-7KQ2", "arguments.cents": "42130", "arguments.currency": "EUR",
        "arguments.to.method": "card", "arguments.to.ending": "4417",
        "arguments.passengers": "Ines Moreau\r\nTom Moreau",
        "arguments.reason": "LH 482 cancelled by the airline", "arguments.notify": "true",
    }  # fmt: skip
    async with person(site) as ada:
        assert "42130" not in await ada.see(f"{card}/edit")
        wrong = await ada.send(
            f"{card}/edit", page=f"{card}/edit", code=422, **form | {"arguments.cents": "many"}
        )
        assert "is no number" in told(wrong)
        unchanged = form | {"arguments.cents": "84260"}
        assert "Nothing is changed" in await ada.send(f"{card}/edit", page=f"{card}/edit", **unchanged)
        preview = await ada.send(f"{card}/edit", page=f"{card}/edit", **form)
        assert "<del><bdi>84260</bdi></del>" in preview
        assert "<ins><bdi>42130</bdi></ins>" in preview
        assert await answer_of(site.broker, interrupt_id) is None
        sent = {name: hidden(preview, name) for name in ("csrf", "seen", "kind", "arguments", "note")}
        done = await ada.client.post(f"{card}/answer", data=sent, follow_redirects=True)
        assert "Approved with changes by ada" in told(done.text)
        assert await answer_of(site.broker, interrupt_id) == Edit(arguments=REFUND | {"cents": 42130})


async def test_F16_a_wrong_shaped_response_is_refused_with_its_path_and_the_question_stays(
    site: Site,
) -> None:
    interrupt_id = await ask(site.broker, triage())
    async with person(site) as ada:
        form: dict[str, Any] = {
            "payload.team": "0",
            "payload.urgent": "true",
            "payload.minutes": "500",
            "payload.tags": "a\r\nb",
        }
        wrong = await ada.answer(interrupt_id, "respond", code=422, **form)
        assert "payload.minutes" in told(wrong)
        assert 'value="500"' in wrong
        assert "a\nb</textarea>" in wrong
        assert await answer_of(site.broker, interrupt_id) is None
        await ada.answer(interrupt_id, "respond", **form | {"payload.minutes": "50"})
        expected = {"team": "baggage", "urgent": True, "minutes": 50, "tags": ["a", "b"]}
        assert await answer_of(site.broker, interrupt_id) == Respond(payload=expected)
        assert set(expected) <= set(TRIAGE["properties"])


async def test_F18_a_question_without_a_schema_takes_text_or_json(site: Site) -> None:
    async with person(site) as ada:
        for n, (way, text, meant) in enumerate((("text", "7", "7"), ("json", "7", 7), ("text", "", ""))):
            interrupt_id = await ask(site.broker, Interrupt.question({"q": 1}), f"s_{n}")
            await ada.answer(interrupt_id, "respond", **typed(way, payload=text))
            assert await answer_of(site.broker, interrupt_id) == Respond(payload=meant)
        interrupt_id = await ask(site.broker, Interrupt.question({"q": 1}), "s_9")
        assert "not JSON" in await ada.answer(interrupt_id, "respond", code=422, **typed("json", payload="{"))


async def test_a_job_elsewhere_is_completed_by_those_who_may(site: Site) -> None:
    job = Interrupt.completion(Action(tool="render", arguments={}), "call_1")
    first, second = await ask(site.broker, job, "s_1"), await ask(site.broker, job, "s_2")
    async with person(site) as ada, person(site, "olga", ApiRole.OPERATOR) as olga:
        assert (
            "complete"
            not in (await ada.see(f"/inbox/i/{first}")).partition("Your answer")[2].partition("</section>")[0]
        )
        await ada.answer(first, "complete", code=403, **typed("json", value="1"))
        assert await answer_of(site.broker, first) is None
        await olga.answer(first, "complete", **typed("json", value='{"url": "x"}'))
        assert await answer_of(site.broker, first) == Complete(value={"url": "x"})
        await olga.answer(second, "fail", error="no disk")
        assert await answer_of(site.broker, second) == Fail(error="no disk")


async def test_a_viewer_sees_and_decides_nothing(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    async with person(site, "vera", ApiRole.VIEWER) as vera:
        page = await vera.see(f"/inbox/i/{interrupt_id}")
        assert "may look, not decide" in page
        csrf = (
            hidden(await vera.see("/inbox/dead"), "csrf") if "csrf" in await vera.see("/inbox/dead") else ""
        )
        refused = await vera.client.post(
            f"/inbox/i/{interrupt_id}/answer", data={"csrf": csrf, "kind": "approve"}
        )
        assert refused.status_code == 403
        assert await answer_of(site.broker, interrupt_id) is None


@pytest.mark.report("RA48")
async def test_F34_several_are_decided_at_once_each_with_an_outcome_of_its_own(site: Site) -> None:
    ids = await equal(site.broker, 4)
    async with person(site) as ada:
        gone = f"&pick={ids[0][:-4]}0000"
        page = await ada.see("/inbox/batch?" + "&".join(f"pick={one}" for one in ids) + gone)
        assert "1 was settled" in told(page)
        assert "They are equal" in page
        await site.broker.inbox.answer(ids[0], Reject(reason="no"), by=Principal(id="bob"))
        digests = {one: (await site.broker.inbox.get(one)).digest for one in ids}
        form = {
            "csrf": hidden(page, "csrf"),
            "kind": "approve",
            "pick": [f"{one}|{digests[one]}" for one in ids[:3]],
        }
        done = await ada.client.post("/inbox/batch", data=form)
        words = told(done.text)
        assert "2 of 3 approved" in words
        assert "bob was first: rejected" in words
        assert (await site.broker.inbox.get(ids[3])).state is Settlement.OPEN
        refused: list[dict[str, Any]] = [{"kind": "reject"}, {"kind": "respond"}, {"pick": []}]
        for changed in refused:
            assert (await ada.client.post("/inbox/batch", data=form | changed)).status_code == 422
