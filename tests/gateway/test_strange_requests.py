"""What nobody sends by accident: each is refused in words that say why, and none of it ends in a traceback."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from broker import Action, Edit, Interrupt, OnExpiry, Principal, Settlement
from broker.core.access import ApiRole
from broker.gateway.inbox import session, words
from broker.testing import await_until
from tests.browser.scenes import ask, refund

from .person import person, told
from .site import Site
from .test_tokens import job


async def post(site: Site, interrupt_id: str, key: str, body: str) -> httpx.Response:
    async with site.client(key) as client:
        client.headers["Content-Type"] = "application/json"
        return await client.post(f"/v1/interrupts/{interrupt_id}/answer", content=body)


@pytest.mark.parametrize("origin", ["http://[", "http://a]", "https://", "//", "null"])
async def test_an_origin_that_is_none_is_refused(site: Site, origin: str) -> None:
    key = await site.key()
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": origin}) as client:
        refused = await client.post("/inbox/sign-in", data={"key": key})
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)


async def test_whoever_has_signed_out_is_out_also_with_a_copy_of_the_cookie(site: Site) -> None:
    """A copy may lie in a backup or a proxy; another session of the same key goes on."""
    async with person(site) as ada, person(site) as elsewhere:
        name = session.cookie_name(site.broker.namespace)
        copy = ada.client.cookies[name]
        assert (
            await ada.client.post("/inbox/sign-out", headers={"Origin": "https://elsewhere"})
        ).status_code == 403
        assert await session.find(site.broker, copy) is not None
        assert (await ada.client.post("/inbox/sign-out")).status_code == 303
        assert await session.find(site.broker, copy) is None
        async with httpx.AsyncClient(base_url=site.url, cookies={name: copy}) as thief:
            assert (await thief.get("/inbox")).status_code == 303
            again = await thief.post("/inbox/sign-out", headers={"Origin": site.url})
            assert again.status_code == 303
        await elsewhere.see()


async def test_signing_out_without_a_session_of_ours_is_no_fault(site: Site) -> None:
    name = session.cookie_name(site.broker.namespace)
    for text in ("", "x", "a.b.c"):
        async with httpx.AsyncClient(base_url=site.url, cookies={name: text}) as nobody:
            left = await nobody.post("/inbox/sign-out", headers={"Origin": site.url})
            assert left.status_code == 303


async def test_P8_a_session_ends_with_its_key_by_the_clock_of_the_server(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway whose own clock is a year behind lets nobody in for longer."""
    new = await site.broker.keys.create(
        Principal(id="ada"), ApiRole.REVIEWER, expires_in=timedelta(milliseconds=1500)
    )
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}) as client:
        await client.post("/inbox/sign-in", data={"key": new.text})
        text = client.cookies[session.cookie_name(site.broker.namespace)]
    behind = datetime.now(UTC) - timedelta(days=365)
    monkeypatch.setattr(words, "now", lambda: behind)

    async def is_over() -> bool:
        return await session.find(site.broker, text) is None

    await await_until(is_over)


@pytest.mark.parametrize("kind", ["complete", "fail"])
async def test_a_key_that_decides_does_not_tell_how_a_job_ended(site: Site, kind: str) -> None:
    """The end of a job is told by whoever may complete; a reviewer's word is none of the job's."""
    one = await job(site.broker)
    answer = {"kind": kind} | ({"value": 1} if kind == "complete" else {"error": "no"})
    refused = await post(site, one, await site.key(), json.dumps({"answer": answer}))
    assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
    assert "scope complete" in refused.json()["detail"]
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN
    operator = await site.key("opa", ApiRole.OPERATOR)
    assert (await post(site, one, operator, json.dumps({"answer": answer}))).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"\\ud800": 1}', "unknown.?"),
        ('{"answer": {"kind": "approve"}, "seen": 1}', "seen"),
        ('{"answer": {"kind": "approve"}, "seen": ["x"]}', "seen"),
        ('{"answer": {"kind": "approve"}, "seen": "\\ud800"}', "seen"),
        ('{"answer": {"kind": "edit", "arguments": []}}', "arguments"),
        ('{"answer": {"kind": "edit", "arguments": "x"}}', "arguments"),
        ('{"answer": {"kind": "edit", "arguments": null}}', "arguments"),
    ],
)
async def test_P12_an_answer_of_odd_parts_names_the_field(site: Site, body: str, field: str) -> None:
    """Also half a surrogate pair as a field's name, and an edit that gives a tool no arguments by name."""
    one = await ask(site.broker, refund())
    refused = await post(site, one, await site.key(), body)
    assert refused.status_code == 422, refused.text
    found: dict[str, Any] = refused.json()
    assert found.get("field", found.get("outcome", {}).get("field")) == field
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


async def test_a_call_without_names_for_its_arguments_is_edited_as_it_is(site: Site) -> None:
    asked = Interrupt.approval(Action(tool="add", arguments=[1, 2]), "c", offers=("approve", "edit"))
    one = await ask(site.broker, asked)
    assert (await site.broker.inbox.answer(one, Edit(arguments=[3]), by=Principal(id="ada"))).ok


@pytest.mark.parametrize("kind", ["edit", "respond"])
async def test_JSON_nested_without_end_is_no_JSON(site: Site, kind: str) -> None:
    one = await ask(site.broker, refund())
    async with person(site) as ada:
        fields = {"arguments": "[" * 100_000} if kind == "edit" else {"payload": "[" * 100_000, "as": "json"}
        assert "cannot be read" in told(await ada.answer(one, kind, code=422, **fields))
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


async def test_a_schema_that_refers_to_itself_is_shown(site: Site) -> None:
    """Its page shows a JSON box, and the answer is refused where the schema never ends."""
    loop = {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}
    one = await ask(site.broker, Interrupt.question({}, {"$ref": "#/$defs/a", "$defs": {"a": loop}}))
    async with person(site) as ada:
        await ada.see(f"/inbox/i/{one}")
        await ada.answer(one, "respond", code=422, payload="1")


@pytest.mark.parametrize("start", ["9223372036854775807", "9" * 27])
async def test_a_place_beyond_all_history_is_refused(site: Site, start: str) -> None:
    async with person(site) as ada:
        shown = await ada.see(f"/inbox/sessions/s_1?start={start}", code=422)
        assert "start is out of range" in told(shown)


async def test_a_stream_about_nothing_is_refused_before_it_begins(site: Site) -> None:
    async with person(site) as ada:
        assert (await ada.client.get("/inbox/live?i=nothing")).status_code == 404


async def test_a_stream_ends_with_the_key_that_it_was_opened_with(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was opened with the key itself and no session."""
    monkeypatch.setattr("broker.gateway.inbox.live.PING", 0.2)
    new = await site.broker.keys.create(Principal(id="ada"), ApiRole.VIEWER)
    async with site.client(new.text) as client, client.stream("GET", "/inbox/live") as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == "event: hello"
        await site.broker.keys.revoke(new.key.id)
        assert "event: over" in [line async for line in lines]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a|aa)+$"},
        {"type": "object", "patternProperties": {"^(a|aa)+$": {}}},
        {"type": "object", "patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
        {
            "type": "string",
            "allOf": [{"$ref": "#/$defs/0"}],
            "$defs": {
                **{f"{n}": {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)},
                "40": {"pattern": "!$"},
            },
        },
    ],
)
async def test_P12_a_pattern_that_never_ends_stops_nobody(site: Site, schema: dict[str, Any]) -> None:
    """Schemas may come from a tool of somebody else's: one that would take years is given up on."""
    one = await ask(site.broker, Interrupt.question({}, schema, on_expiry=OnExpiry.WAIT))
    text = "a" * 40 + "!"
    began = time.monotonic()
    said = await post(
        site, one, await site.key(),
        json.dumps({"answer": {"kind": "respond", "payload": text if schema["type"] == "string" else {text: 1}}}),
    )  # fmt: skip
    assert said.status_code == 422
    assert time.monotonic() - began < 10
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


async def test_numbers_beyond_all_numbers_are_refused(site: Site) -> None:
    """In an edit that is looked at, and in the death that an operator sends a run back from."""
    one = await ask(site.broker, refund())
    card = f"/inbox/i/{one}"
    async with person(site, "opa", ApiRole.OPERATOR) as opa:
        await opa.send(
            f"{card}/edit?as=json",
            page=f"{card}/edit?as=json",
            code=422,
            arguments='{"cents": 1e999}',
            **{"as": "json"},
        )
        for fence in ("9" * 5000, "x", "²"):
            await opa.send("/inbox/dead/run_x/requeue", page=card, code=422, fence=fence)
