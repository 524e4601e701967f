"""The resources of the API, as a program in another language uses them."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from broker import Action, AsyncBroker, Complete, Interrupt, RunState, Settlement
from broker.core.access import ApiRole
from broker.core.tokens import Purpose
from broker.gateway import GatewaySettings

from .site import Site, serving


async def approval(broker: AsyncBroker, session: str = "s", tool: str = "refund") -> str:
    question = Interrupt.approval(Action(tool=tool, arguments={"cents": 5}), "call-1")
    return (await broker.suspend("shop", question, session=session)).interrupt_ids[0]


async def job(broker: AsyncBroker, session: str = "s") -> str:
    question = Interrupt.completion(Action(tool="render", arguments={}), "job-1")
    return (await broker.suspend("studio", question, session=session)).interrupt_ids[0]


async def post(client: httpx.AsyncClient, path: str, body: Any, **headers: str) -> httpx.Response:
    return await client.post(path, json=body, headers=headers)


async def test_a_run_is_started_shown_explained_and_withdrawn(site: Site) -> None:
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        started = await post(boss, "/v1/runs", {"agent": "shop", "session": "s", "input": {"text": "hi"}})
        assert (started.status_code, started.json()["code"]) == (201, "accepted")
        run = f"/v1/runs/{started.json()['run_id']}"
        assert (await boss.get(run)).json()["input"] == {"text": "hi"}
        assert (await boss.get(f"{run}/why")).json()["cause"]
        gone = await post(boss, f"{run}/withdraw", {"reason": "not wanted"})
        assert (gone.status_code, gone.json()["code"]) == (200, "accepted")
        assert (await boss.get(run)).json()["state"] == RunState.WITHDRAWN
        events = [one["event"] for one in (await boss.get("/v1/sessions/s/history")).json()["items"]]
    assert events == ["started", "withdrawn"]


async def test_F06_the_same_start_under_a_key_is_the_same_run(site: Site) -> None:
    body = {"agent": "shop", "session": "s", "input": 1}
    async with site.client(await site.key("bot", ApiRole.AGENT, kind="agent")) as bot:
        first = await post(bot, "/v1/runs", body, **{"Idempotency-Key": "k-1"})
        again = await post(bot, "/v1/runs", body, **{"Idempotency-Key": "k-1"})
        other = await post(bot, "/v1/runs", body | {"input": 2}, **{"Idempotency-Key": "k-1"})
        both = await post(bot, "/v1/runs", body | {"key": "k"}, **{"Idempotency-Key": "k-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run_id"] == again.json()["run_id"]
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert (both.status_code, both.json()["field"]) == (422, "key")


async def test_F12_an_answer_is_repeated_under_its_idempotency_key_by_nobody_else(site: Site) -> None:
    """The same key of another caller is another operation. Off: the caller in the operation's name."""
    one = await approval(site.broker)
    path, body = f"/v1/interrupts/{one}/answer", {"answer": {"kind": "approve"}}
    key = {"Idempotency-Key": "press-1"}
    async with site.client(await site.key("ada")) as ada, site.client(await site.key("bob")) as bob:
        codes = [(await post(ada, path, body, **key)).json()["code"] for _ in range(2)]
        other = await post(bob, path, body, **key)
    assert codes == ["accepted", "replayed"]
    assert (other.status_code, other.json()["outcome"]["winner"]["by"]["id"]) == (409, "ada")


async def test_F16_RB68_a_wrong_shaped_answer_names_the_path_and_the_question_stays(site: Site) -> None:
    schema = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
    asked = await site.broker.suspend("a", Interrupt.question("how many?", schema), session="s")
    path = f"/v1/interrupts/{asked.interrupt_ids[0]}/answer"
    async with site.client(await site.key()) as ada:
        wrong = await post(ada, path, {"answer": {"kind": "respond", "payload": {"seats": "two"}}})
        right = await post(ada, path, {"answer": {"kind": "respond", "payload": {"seats": 2}}})
    assert (wrong.status_code, wrong.json()["outcome"]["field"]) == (422, "payload.seats")
    assert right.status_code == 200


async def test_F13_late_answers_are_gone_and_F37_withdrawn_ones_too(site: Site) -> None:
    late = await site.broker.suspend("a", Interrupt(expires_in=timedelta(milliseconds=1)), session="s1")
    taken = await approval(site.broker, "s2")
    await site.broker.runs.withdraw((await site.broker.inbox.get(taken)).run_id)
    async with site.client(await site.key()) as ada:
        for one, code in ((late.interrupt_ids[0], "expired"), (taken, "withdrawn")):
            kind = {"kind": "cancel"}
            came = await post(ada, f"/v1/interrupts/{one}/answer", {"answer": kind})
            assert (came.status_code, came.json()["code"]) == (410, code)


async def test_F34_many_are_answered_at_once_each_with_its_outcome(site: Site) -> None:
    ids = [await approval(site.broker, f"s{n}") for n in range(3)]
    rows = [{"interrupt_id": one, "answer": {"kind": "approve"}} for one in (*ids, ids[0])]
    rows.append({"interrupt_id": "int_none", "answer": {"kind": "approve"}})
    rows[1]["seen"] = "sha256:other"
    async with site.client(await site.key()) as ada:
        told = (await post(ada, "/v1/answers", {"answers": rows})).json()["outcomes"]
        odd = await post(ada, "/v1/answers", {"answers": [rows[2] | {"by": "eve"}]})
    assert [one["ok"] for one in told] == [True, False, True, True, False]
    assert [one["code"] for one in told][3:] == ["replayed", "unknown"]
    assert (odd.status_code, odd.json()["field"]) == (422, "answers[0].by")
    assert (await site.broker.inbox.get(ids[1])).state is Settlement.OPEN


async def test_F48_RA45_the_list_comes_in_pages_and_is_filtered(site: Site) -> None:
    for n in range(5):
        await approval(site.broker, f"s{n}", tool=f"tool-{n % 2}")
    async with site.client(await site.key()) as ada:
        seen, path = [], "/v1/interrupts?limit=2&tool=tool-0"
        while path:
            page = await ada.get(path)
            seen += [row["session_id"] for row in page.json()["items"]]
            path = str(page.links["next"]["url"]) if "next" in page.links else ""
        odd = await ada.get("/v1/interrupts?colour=red")
        wrong = await ada.get("/v1/interrupts?cursor=nonsense")
    assert seen == ["s0", "s2", "s4"]
    assert (odd.status_code, wrong.status_code, wrong.json()["field"]) == (422, 422, "cursor")


@pytest.mark.parametrize("way", ["id", "token", "bearer"])
async def test_a_job_is_completed_by_id_or_token(site: Site, way: str) -> None:
    one = await job(site.broker)
    token = (await site.broker.tokens.create(one, Purpose.COMPLETE)).text
    shown = token if way == "bearer" else await site.key("studio", ApiRole.SERVICE, kind="service")
    body: dict[str, Any] = {"value": {"url": "v"}}
    if way != "bearer":
        body["to"] = one if way == "id" else token
    async with site.client(shown) as studio:
        codes = [(await post(studio, "/v1/completions", body)).json()["code"] for _ in range(2)]
    assert codes == ["accepted", "replayed"]
    resolution = (await site.broker.inbox.get(one)).resolution
    assert resolution is not None
    assert resolution.answer == Complete(value={"url": "v"})


async def test_F41_a_token_completes_what_it_is_for_and_nothing_else(site: Site) -> None:
    """Cross-interrupt: what the body names is held against the token. Off: the check in `_job`."""
    mine, other = await job(site.broker, "s1"), await job(site.broker, "s2")
    token = (await site.broker.tokens.create(mine, Purpose.COMPLETE)).text
    async with site.client(token) as studio:
        refused = await post(studio, "/v1/completions", {"to": other, "value": 1})
        failed = await post(studio, "/v1/completions/failures", {"error": "no film"})
    assert (refused.status_code, refused.json()["field"]) == (422, "to")
    assert failed.status_code == 200
    assert (await site.broker.inbox.get(other)).state is Settlement.OPEN


async def test_dead_letters_are_listed_and_sent_back_by_an_operator(site: Site) -> None:
    started = await site.broker.start("a", session="s")
    async with site.broker.take(started.run_id) as run:
        await run.fail("NoLuck", "the shop is closed", final=True)
    path = f"/v1/dead/{started.run_id}/requeue"
    async with (
        site.client(await site.key()) as ada,
        site.client(await site.key("boss", ApiRole.OPERATOR)) as boss,
    ):
        (row,) = (await ada.get("/v1/dead")).json()["items"]
        assert row["id"] == started.run_id
        assert (await post(ada, path, {})).status_code == 403
        assert (await post(boss, path, {})).status_code == 200
    assert (await site.broker.runs.get(started.run_id)).state is RunState.READY


async def test_keys_are_made_listed_and_revoked_by_an_operator(site: Site) -> None:
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        made = await post(boss, "/v1/keys", {"principal": {"id": "eve"}, "role": "viewer"})
        assert made.status_code == 201
        async with site.client(made.json()["text"]) as eve:
            assert (await eve.get("/v1/interrupts")).status_code == 200
            assert (await eve.get("/v1/keys")).status_code == 403
            key = made.json()["key"]["id"]
            assert (await post(boss, f"/v1/keys/{key}/revoke", {})).json()["id"] == key
            assert (await eve.get("/v1/interrupts")).status_code == 401
        rows = (await boss.get("/v1/keys")).json()["items"]
        agent = {"principal": {"id": "bot", "kind": "agent"}, "role": "reviewer"}
        refused = await post(boss, "/v1/keys", agent)
    assert [row["principal"]["id"] for row in rows] == ["boss", "eve"]
    assert (refused.status_code, refused.json()["field"]) == (422, "role")


async def test_F46_who_asks_too_often_is_told_when_to_come_back(broker: AsyncBroker) -> None:
    """Two gateways count together. Off: `_spend`."""
    few = GatewaySettings(requests_per_minute=3)
    async with serving(broker, settings=few) as one, serving(broker, settings=few) as two:
        key = await one.key()
        async with one.client(key) as here, two.client(key) as there, one.client(await one.key("bob")) as bob:
            came = [await client.get("/v1/fleet") for client in (here, there, here, there, here, there, here)]
            assert [one.status_code for one in came][-1] == 429
            assert 1 <= int(came[-1].headers["Retry-After"]) <= 60
            assert (await bob.get("/v1/fleet")).status_code == 200


async def test_a_body_that_is_too_large_is_refused_however_it_is_sent(broker: AsyncBroker) -> None:
    async def parts() -> Any:
        for _ in range(10):
            yield b"x" * 500

    small = GatewaySettings(max_body=1000)
    async with (
        serving(broker, settings=small) as site,
        site.client(await site.key("bot", ApiRole.AGENT)) as bot,
    ):
        told = await post(bot, "/v1/runs", {"agent": "a", "session": "s", "input": "x" * 2000})
        streamed = await bot.post("/v1/runs", content=parts(), headers={"Content-Type": "application/json"})
    assert [(one.status_code, one.json()["code"]) for one in (told, streamed)] == [(413, "too_large")] * 2


async def test_what_is_no_JSON_is_refused_and_only_after_the_caller_is_known(site: Site) -> None:
    body = {"content": b'{"an', "headers": {"Content-Type": "application/json"}}
    async with site.client(await site.key("bot", ApiRole.AGENT)) as bot, site.client() as nobody:
        assert (await bot.post("/v1/runs", **body)).status_code == 400  # type: ignore[arg-type]
        assert (await nobody.post("/v1/runs", **body)).status_code == 401  # type: ignore[arg-type]
        assert (await bot.post("/v1/runs", data={"agent": "a"})).status_code == 415
        deep = b"[" * 100_000
        headers = {"Content-Type": "application/json"}
        assert (await bot.post("/v1/runs", content=deep, headers=headers)).status_code == 400


async def test_another_site_is_told_nothing_about_sharing(site: Site) -> None:
    """CORS is off: a page of another origin cannot read what the gateway says."""
    async with site.client(await site.key()) as ada:
        origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        for came in (
            await ada.get("/v1/fleet", headers=origin),
            await ada.options("/v1/fleet", headers=origin),
        ):
            assert [name for name in came.headers if name.startswith("access-control")] == []


async def test_a_request_that_takes_too_long_ends(broker: AsyncBroker) -> None:
    short = GatewaySettings(request_seconds=0.000001)
    async with serving(broker, settings=short) as site, site.client(await site.key()) as ada:
        came = await ada.get("/v1/fleet")
    assert (came.status_code, came.json()["code"]) == (504, "timeout")


async def test_two_at_once_one_counts(site: Site) -> None:
    """P4 over HTTP: of twenty answers at one moment one is accepted; each of the others is told who was first."""
    one = await approval(site.broker)
    keys = [await site.key(f"p{n}") for n in range(20)]

    async def press(key: str) -> httpx.Response:
        async with site.client(key) as client:
            return await post(client, f"/v1/interrupts/{one}/answer", {"answer": {"kind": "approve"}})

    came = await asyncio.gather(*[press(key) for key in keys])
    winners = [one for one in came if one.status_code == 200]
    assert len(winners) == 1
    losers = {one.json()["outcome"]["winner"]["by"]["id"] for one in came if one.status_code == 409}
    resolution = (await site.broker.inbox.get(one)).resolution
    assert resolution is not None
    assert resolution.by is not None
    assert losers == {resolution.by.id}
