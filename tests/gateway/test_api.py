"""The resources of the API, as a program in another language uses them."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from broker import Action, AsyncBroker, Complete, Interrupt, RunState, Settlement
from broker.core.access import ApiRole
from broker.core.tokens import Purpose

from .site import Site


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


async def test_F16_a_wrong_shaped_answer_names_the_path_and_the_question_stays(site: Site) -> None:
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


@pytest.mark.report("RA45")
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


async def test_F18_a_job_tells_that_it_still_runs_by_id_or_token(site: Site) -> None:
    question = Interrupt.completion(
        Action(tool="render", arguments={}), "job-1", heartbeat=timedelta(minutes=5)
    )
    one = (await site.broker.suspend("studio", question, session="s")).interrupt_ids[0]
    before = (await site.broker.inbox.get(one)).heartbeat_by
    token = (await site.broker.tokens.create(one, Purpose.HEARTBEAT)).text
    async with (
        site.client(await site.key("studio", ApiRole.SERVICE, kind="service")) as studio,
        site.client(token) as holder,
        site.client(await site.key()) as ada,
    ):
        assert (await post(studio, "/v1/heartbeats", {"to": one})).json()["code"] == "accepted"
        assert (await post(holder, "/v1/heartbeats", {})).status_code == 200
        assert (await post(holder, "/v1/completions", {"value": 1})).status_code == 403
        assert (await post(ada, "/v1/heartbeats", {"to": one})).status_code == 403
        assert (await post(studio, "/v1/heartbeats", {"to": "int_none"})).status_code == 404
    after = (await site.broker.inbox.get(one)).heartbeat_by
    assert before is not None
    assert after is not None
    assert after > before


async def test_a_key_is_rotated_over_the_API(site: Site) -> None:
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        made = (await post(boss, "/v1/keys", {"principal": {"id": "eve"}, "role": "viewer"})).json()
        path = f"/v1/keys/{made['key']['id']}/rotate"
        turned = await post(boss, path, {"overlap_ms": 0})
        assert turned.status_code == 201
        again = await post(boss, path, {"overlap_ms": 0})
    assert (again.status_code, again.json()["field"]) == (422, "key_id")
    async with site.client(made["text"]) as old, site.client(turned.json()["text"]) as new:
        assert (await old.get("/v1/fleet")).status_code == 401
        assert (await new.get("/v1/fleet")).status_code == 200


async def test_F12_one_idempotency_key_with_other_content_is_no_repeat(site: Site) -> None:
    """Nobody who rejects is told that it was done since they had approved. Off: the content in the operation's name."""
    one, other = await approval(site.broker, "s1"), await job(site.broker, "s2")
    key = {"Idempotency-Key": "press-1"}
    answer = f"/v1/interrupts/{one}/answer"
    yes, no = {"answer": {"kind": "approve"}}, {"answer": {"kind": "reject", "reason": "no"}}
    async with (
        site.client(await site.key("ada")) as ada,
        site.client(await site.key("studio", ApiRole.SERVICE, kind="service")) as studio,
    ):
        for client, path, first, second in (
            (ada, answer, yes, no),
            (studio, "/v1/completions", {"to": other, "value": 1}, {"to": other, "value": 2}),
        ):
            told = [(await post(client, path, sent, **key)) for sent in (first, second, first)]
            assert [came.status_code for came in told] == [200, 409, 200]
            assert [came.json()["code"] for came in told] == ["accepted", "already_decided", "replayed"]


async def test_F12_F34_a_batch_is_repeated_under_its_idempotency_key(site: Site) -> None:
    ids = [await approval(site.broker, f"s{n}") for n in range(2)]
    body = {"answers": [{"interrupt_id": one, "answer": {"kind": "approve"}} for one in ids]}
    async with site.client(await site.key()) as ada:
        for code in ("accepted", "replayed"):
            rows = (await post(ada, "/v1/answers", body, **{"Idempotency-Key": "all"})).json()["outcomes"]
            assert [row["code"] for row in rows] == [code, code]
