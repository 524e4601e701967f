"""The inbox among strangers: text of agents stays text, other sites decide nothing, and opening a link neither."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser

import httpx
import pytest

from broker import Action, AsyncBroker, Interrupt, InterruptState, Principal, Settlement
from broker.core.access import ApiRole
from broker.gateway.inbox import session
from broker.testing import RunningServer
from tests.browser.scenes import ask, refund

from .person import hidden, person, told
from .site import Site

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href=javascript:alert(3)>"
TURNED = "pay \u202e0001 \u200bEUR"


def hostile() -> Interrupt:
    """A question in which the agent wrote a script wherever it may write."""
    return Interrupt.approval(
        Action(tool=SCRIPT, arguments={SCRIPT: SCRIPT, "list": [SCRIPT], "turned": TURNED}), SCRIPT,
        message=SCRIPT + TURNED, payload={SCRIPT: SCRIPT}, labels=(SCRIPT,), reviewers=(SCRIPT,),
        metadata={SCRIPT: SCRIPT}, policy=SCRIPT, policy_version=SCRIPT, agent_path=(SCRIPT,),
        offers=("approve", "edit", "reject", "respond", "cancel"),
        requested_by=Principal(id=SCRIPT), expires_in=timedelta(hours=1),
        response_schema={
            "type": "object", "title": SCRIPT, "description": SCRIPT, "required": [SCRIPT],
            "properties": {
                SCRIPT: {"type": "string", "title": SCRIPT, "description": SCRIPT},
                "e": {"enum": [SCRIPT, *"abcd"]}, "d": {"type": "string", "default": SCRIPT}, "c": {"const": SCRIPT},
                "l": {"type": "array", "items": {"enum": [SCRIPT]}},
                "o": {"type": "object", "properties": {SCRIPT: {}}},
            },
        },
    )  # fmt: skip


async def hostile_pause(broker: AsyncBroker) -> str:
    state = InterruptState(
        system_prompt=SCRIPT,
        context_snapshot=[
            {"role": SCRIPT, "name": SCRIPT, "content": SCRIPT + TURNED, "tool_calls": [{SCRIPT: SCRIPT}]},
            {"role": "user", "content": [{"text": SCRIPT}, {SCRIPT: SCRIPT}, SCRIPT]},
            {"role": "user", "content": "x" * 1000 + SCRIPT},
            SCRIPT, [SCRIPT],
        ],
    )  # fmt: skip
    by = Principal(id=SCRIPT)
    paused = await broker.suspend(
        "shop", hostile(), session=SCRIPT, state=state, by=by, input={SCRIPT: SCRIPT}
    )
    return paused.interrupt_ids[0]


class Markup(HTMLParser):
    """What a browser would take a page's markup for, and may not be there."""

    ATTRIBUTES = frozenset({
        "accesskey", "action", "alt", "aria-current", "aria-describedby", "aria-hidden", "aria-label",
        "aria-labelledby", "autocomplete", "autofocus", "checked", "class", "colspan", "content",
        "charset", "data-ago", "data-age", "data-back", "data-base", "data-clock", "data-id", "data-key",
        "data-live", "data-next", "data-until", "data-version", "datetime", "defer", "disabled", "for",
        "height", "hidden", "href", "id", "inputmode", "lang", "method", "name", "open", "placeholder",
        "readonly", "rel", "required", "role", "rows", "scope", "selected", "spellcheck", "src",
        "tabindex", "title", "type", "value", "width",
    })  # fmt: skip

    def __init__(self, page: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        ours = tag != "img" or given.get("src") == "/inbox/static/icon.svg"
        if tag in {"iframe", "object", "embed", "style", "base", "svg"} or not ours:
            self.wrong.append(tag)
        if tag == "script" and given.get("src") != "/inbox/static/inbox.js":
            self.wrong.append("script")
        self.wrong += [name for name in given if name not in self.ATTRIBUTES]
        for name in ("href", "src", "action"):
            if not (given.get(name) or "/").startswith(("/inbox", "?", "#", "/")) or (
                given.get(name) or ""
            ).startswith("//"):
                self.wrong.append(f"{name}={given[name]}")


def check_is_text(page: str) -> None:
    """None of it is markup, a link, an attribute or an unseen character."""
    assert Markup(page).wrong == []
    assert "\u202e" not in page
    assert "\u200b" not in page


def test_markup_of_others_is_noticed() -> None:
    """The check above can fail."""
    for page in (
        SCRIPT,
        '<p onclick="x">',
        "<a href=javascript:x>",
        '<a href="//x">',
        "<svg>",
        "<script>x</script>",
    ):
        assert Markup(page).wrong


async def test_stored_scripts_stay_text_on_every_page(site: Site) -> None:
    """Every field that an agent, its program or a reviewer may write, on every page that shows it."""
    interrupt_id = await hostile_pause(site.broker)
    card = f"/inbox/i/{interrupt_id}"
    async with person(site, SCRIPT[:200], ApiRole.OPERATOR, groups=(SCRIPT,)) as ada:
        pages = ["/inbox", "/inbox?grouped=1", f"{card}?conversation=1", f"{card}/edit", f"{card}/edit?as=json",
                 f"/inbox/batch?pick={interrupt_id}", "/inbox/fleet"]  # fmt: skip
        record = await site.broker.inbox.get(interrupt_id)
        async with httpx.AsyncClient() as nobody:
            pages.append(
                str(
                    nobody.build_request("GET", f"{site.url}/inbox/sessions/{_quoted(record.session_id)}").url
                )
            )
        for path in pages:
            shown = await ada.see(path)
            check_is_text(shown)
            assert "alert(1)" in shown or path == "/inbox/fleet"
        assert "U+202E" in await ada.see(card)
        shown = await ada.answer(
            interrupt_id, "respond", code=422, **{f"payload.{SCRIPT}": SCRIPT, "payload.e": SCRIPT}
        )
        check_is_text(shown)
        shown = await ada.answer(interrupt_id, "reject", reason=SCRIPT + TURNED)
        check_is_text(shown)
        assert "alert(1)" in shown.partition('id="end"')[2]
        check_is_text(
            await ada.see(f"/inbox?tool={SCRIPT}&queue={SCRIPT}&label={SCRIPT}&cursor={SCRIPT}", code=422)
        )
        check_is_text(await ada.see(f"/inbox?tool={SCRIPT}&label={SCRIPT}"))
        check_is_text(await ada.see(f"/inbox/dead?done={SCRIPT}&refused={SCRIPT}"))
        check_is_text(await ada.see(f"/inbox/i/{'x' * 10}%3Cscript%3Ealert(1)%3C%2Fscript%3E", code=404))


def _quoted(text: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - one use

    return quote(text, safe="")


async def test_every_page_lets_nothing_foreign_in(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    async with person(site) as ada:
        paths = ["/inbox", f"/inbox/i/{interrupt_id}", "/inbox/dead", "/inbox/fleet", "/inbox/sessions/s_1",
                 "/inbox/i/x", "/inbox/sign-in", "/inbox/static/inbox.css", "/inbox/static/inbox.js",
                 "/inbox/static/none", "/"]  # fmt: skip
        for path in paths:
            reply = await ada.client.get(path)
            policy = reply.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["x-frame-options"] == "DENY"
            assert reply.headers["referrer-policy"] == "same-origin"
            for inline in (" style=", " onclick=", "<style", "http://", "https://"):
                assert inline not in reply.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
            assert reply.text.count("<script") == reply.text.count("<script src=")
            if not path.startswith("/inbox/static/"):
                assert reply.headers["cache-control"] == "no-store"


@pytest.mark.report("RA36")
async def test_F40_opening_decides_nothing_whatever_the_method(site: Site) -> None:
    """RA36: link scanners and previews open every address there is, with and without a session."""
    interrupt_id = await ask(site.broker, refund())
    token = await site.broker.tokens.create(interrupt_id, "decide", for_=Principal(id="eve@example.com"))
    query = "kind=approve&reason=x&seen=" + (await site.broker.inbox.get(interrupt_id)).digest
    paths = [f"/inbox/i/{interrupt_id}", f"/inbox/i/{interrupt_id}/answer", f"/inbox/i/{interrupt_id}/edit",
             "/inbox/batch", f"/inbox/t/{token.text}", f"/inbox/t/{token.text}/answer", "/inbox/next"]  # fmt: skip
    async with person(site) as ada, httpx.AsyncClient(base_url=site.url) as nobody:
        for client, method, path in itertools.product(
            (ada.client, nobody), ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"), paths
        ):
            reply = await client.request(method, f"{path}?{query}&pick={interrupt_id}")
            assert reply.status_code < 500
        assert (await site.broker.inbox.get(interrupt_id)).state is Settlement.OPEN
        assert len(await site.broker.history("s_1")) == 1


@pytest.mark.parametrize(
    ("origin", "csrf"),
    [
        ("https://elsewhere.example", None), ("null", None), (None, None), ("", None),
        ("ours", ""), ("ours", "0" * 64), ("ours", "é"), ("ours", "another"),
    ],
)  # fmt: skip
async def test_a_form_of_another_site_or_session_decides_nothing(
    site: Site, origin: str | None, csrf: str | None
) -> None:
    interrupt_id = await ask(site.broker, refund())
    async with person(site) as ada, person(site, "bob") as bob:
        page = await ada.see(f"/inbox/i/{interrupt_id}")
        shown = {
            None: hidden(page, "csrf"),
            "another": hidden(await bob.see(f"/inbox/i/{interrupt_id}"), "csrf"),
        }
        form = {"kind": "approve", "seen": hidden(page, "seen"), "csrf": shown.get(csrf, csrf)}
        headers = {"Origin": site.url if origin == "ours" else origin} if origin is not None else {}
        del ada.client.headers["Origin"]
        for path, more in (
            (f"/inbox/i/{interrupt_id}/answer", {}),
            ("/inbox/batch", {"pick": f"{interrupt_id}|"}),
        ):
            refused = await ada.client.post(path, data=form | more, headers=headers)
            assert refused.status_code == 403
        assert (await site.broker.inbox.get(interrupt_id)).state is Settlement.OPEN


async def test_F41_a_guest_sees_and_answers_the_one_question_of_their_link(site: Site) -> None:
    interrupt_id, other = await ask(site.broker, refund(), "s_1"), await ask(site.broker, refund(), "s_2")
    token = (
        await site.broker.tokens.create(interrupt_id, "decide", for_=Principal(id="eve@example.com"))
    ).text
    async with httpx.AsyncClient(base_url=site.url, follow_redirects=True) as eve:
        page = (await eve.get(f"/inbox/t/{token}")).text
        assert "as eve@example.com" in told(page)
        assert "s_1" not in told(page)
        async with person(site) as ada:  # on such a page she is who the link is for
            assert "as eve@example.com" in told(await ada.see(f"/inbox/t/{token}"))
        form = {"kind": "approve", "seen": hidden(page, "seen"), "csrf": hidden(page, "csrf")}
        here = {"Origin": site.url}
        for headers, changed in (
            ({}, {}),
            (here, {"csrf": ""}),
            ({"Origin": "https://elsewhere.example"}, {}),
        ):
            refused = await eve.post(f"/inbox/t/{token}/answer", data=form | changed, headers=headers)
            assert refused.status_code == 403
        assert (await eve.get(f"/inbox/i/{other}")).url.path == "/inbox/sign-in"
        assert (await eve.get(f"/inbox/t/{token[:-3]}xxx")).status_code == 403
        done = await eve.post(f"/inbox/t/{token}/answer", data=form, headers=here)
        assert "Approved by eve@example.com" in told(done.text)
        found = (await site.broker.inbox.get(interrupt_id)).resolution
        assert found is not None
        assert found.by is not None
        assert found.by.id == "eve@example.com"
        assert (await site.broker.inbox.get(other)).state is Settlement.OPEN
        late = await eve.post(
            f"/inbox/t/{token}/answer", data=form | {"kind": "reject", "reason": "no"}, headers=here
        )
        assert (late.status_code, "was first" in told(late.text)) == (409, True)


async def test_F42_who_has_used_a_link_for_one_use_sees_that_it_counted(site: Site) -> None:
    """Off: the page is shown by another request, which the link is no good for any more."""
    interrupt_id = await ask(site.broker, refund())
    holder = Principal(id="eve@example.com")
    token = (await site.broker.tokens.create(interrupt_id, "decide", for_=holder, single_use=True)).text
    async with httpx.AsyncClient(base_url=site.url, follow_redirects=True) as eve:
        page = (await eve.get(f"/inbox/t/{token}")).text
        form = {"kind": "approve", "seen": hidden(page, "seen"), "csrf": hidden(page, "csrf")}
        done = await eve.post(f"/inbox/t/{token}/answer", data=form, headers={"Origin": site.url})
        assert (done.status_code, "Approved by eve@example.com" in told(done.text)) == (200, True)
        assert (await eve.get(f"/inbox/t/{token}")).status_code == 403


async def test_F42_a_revoked_link_shows_nothing(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    token = await site.broker.tokens.create(interrupt_id, "decide")
    completes = await site.broker.tokens.create(
        await ask(site.broker, Interrupt.completion(Action(tool="render", arguments={}), "c"), "s_2"),
        "complete",
    )
    await site.broker.tokens.revoke(token.text)
    async with httpx.AsyncClient(base_url=site.url) as eve:
        for text in (token.text, completes.text, "brt_x"):
            refused = await eve.get(f"/inbox/t/{text}")
            assert (refused.status_code, "issue_refund" in refused.text) == (403, False)


async def test_a_session_of_one_namespace_opens_no_other(
    site: Site, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """P13: the same cookie, sent to the gateway of another namespace."""
    async with person(site) as ada:
        text = ada.client.cookies[session.cookie_name(site.broker.namespace)]
        async with AsyncBroker(server.url, namespace=new_namespace()) as other:
            await other.signing.rotate()
            assert await session.find(site.broker, text) is not None
            assert await session.find(other, text) is None
