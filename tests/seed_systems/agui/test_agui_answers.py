"""What the entries of a resume say reaches the run and comes back out as it came in."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    Cancel,
    Edit,
    Interrupt,
    Reject,
    Respond,
    Settlement,
    Verdict,
)
from broker.interop import agui

from .making import EDITABLE, ask, entry, foreign, ids, request, transfer

YES, NO = {"approved": True}, {"approved": False}


async def settled(broker: AsyncBroker, threads: agui.AsyncThreads, question: Interrupt, said: Any) -> Any:
    """How a question is settled by one entry."""
    run = await ask(broker, question)
    (mine,) = await ids(broker, run)
    came = await threads.receive(request({**said, "interruptId": mine}))
    assert isinstance(came, agui.Plan), came
    return await broker.inbox.get(mine)


@pytest.mark.row("G14")
async def test_G14_denied_and_abandoned_stay_two_things(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer("call_9"), transfer("call_8"))
    first, second = await ids(broker, run)
    listed = [entry(first, NO), entry(second, status="cancelled")]
    assert isinstance(await threads.receive(request(*listed)), agui.Plan)
    records = [await broker.inbox.get(one) for one in (first, second)]
    assert [one.state for one in records] == [Settlement.RESOLVED, Settlement.CANCELLED]
    answers = [one.resolution.answer for one in records if one.resolution]
    assert [type(one) for one in answers] == [Reject, Cancel]
    back = [agui.entry_of(one) for one in records]
    assert [one.to_json() for one in back if one] == [
        {"interruptId": first, "status": "resolved", "payload": NO},
        {"interruptId": second, "status": "cancelled"},
    ]


@pytest.mark.row("G14")
@pytest.mark.parametrize(
    "payload", [True, None, {}, {"approved": 1}, {"approved": "true"}, {"ok": True}, "yes"]
)
async def test_G14_nothing_but_approved_true_approves(
    broker: AsyncBroker, threads: agui.AsyncThreads, payload: Any
) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    came = await threads.receive(request(entry(mine, payload)))
    assert isinstance(came, agui.Refusal)
    assert (came.code, came.path) == ("INVALID_PAYLOAD", "/approved")
    assert (await broker.inbox.get(mine)).state is Settlement.OPEN


@pytest.mark.row("G15")
async def test_G15_the_same_list_again_in_any_order_changes_nothing_and_runs_nothing(
    broker: AsyncBroker, threads: agui.AsyncThreads, connect: Callable[..., Any]
) -> None:
    run = await ask(broker, transfer("call_9"), transfer("call_8", offers=EDITABLE))
    first, second = await ids(broker, run)
    edited = {"approved": True, "editedArgs": {"to": "b", "n": 2}}
    listed = [entry(first, NO), entry(second, edited)]
    assert await threads.receive(request(*listed)) != agui.Plan(run, replayed=True)
    turned = [entry(second, {"editedArgs": {"n": 2.0, "to": "b"}, "approved": True}), entry(first, NO)]
    elsewhere = agui.AsyncThreads(await connect())
    before = await broker.history("th_2")
    for again in (request(*listed), request(*turned), request(*turned, run="run_66")):
        assert await elsewhere.receive(again) == agui.Plan(run, replayed=True)
    assert await broker.runs.ready("agents") == (run,)
    async with broker.take(run) as held:
        assert [one.answer for one in held.resolutions][1] == Edit(
            arguments={"to": "b", "n": 2}, protocol_id="run_6"
        )
        await held.finish("sent")
    assert await elsewhere.receive(request(*turned)) == agui.Plan(run, replayed=True)
    assert await broker.runs.ready("agents") == ()
    assert (await elsewhere.ended(run, "run_6")).to_json()["result"] == "sent"
    assert [one.event for one in await broker.history("th_2")][: len(before)] == [one.event for one in before]


@pytest.mark.row("G15")
async def test_G15_another_answer_to_what_is_settled_conflicts(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer("call_9"), transfer("call_8"))
    first, second = await ids(broker, run)
    assert isinstance(await threads.receive(request(entry(first, YES), entry(second, NO))), agui.Plan)
    for other in (
        entry(second, YES),
        entry(second, status="cancelled"),
        entry(second, {**NO, "reason": "late"}),
    ):
        came = await threads.receive(request(entry(first, YES), other))
        assert isinstance(came, agui.Refusal)
        assert (came.code, came.ids) == ("conflict", (second,))


@pytest.mark.row("G15")
async def test_G15_a_list_of_an_earlier_pause_is_a_replay_and_answers_nothing_new(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer("call_9"))
    (first,) = await ids(broker, run)
    old = request(entry(first, YES))
    assert isinstance(await threads.receive(old), agui.Plan)
    async with broker.take(run) as held:
        await held.suspend(transfer("call_10"))
    (second,) = await ids(broker, run)
    assert await threads.receive(old) == agui.Plan(run, replayed=True)
    assert (await broker.inbox.get(second)).state is Settlement.OPEN


@pytest.mark.row("G15", "G10")
async def test_G15_a_list_that_was_half_taken_when_its_process_died_is_taken_to_its_end(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer("call_9"), transfer("call_8"))
    first, second = await ids(broker, run)
    whole = request(entry(first, YES), entry(second, NO))
    made = agui.plan(whole, await threads.read("th_2"))
    assert isinstance(made, agui.Plan)
    await broker.batch.answer(made.answers[:1])  # and then it was gone
    half = await threads.receive(request(entry(first, YES)))
    assert isinstance(half, agui.Refusal)
    assert (half.code, half.ids) == ("PARTIAL_RESUME", (second,))
    again = await threads.receive(whole)
    assert isinstance(again, agui.Plan)
    assert [one.interrupt_id for one in again.answers] == [second]
    assert await threads.receive(whole) == agui.Plan(run, replayed=True)


@pytest.mark.row("G15")
async def test_G15_of_racing_clients_one_is_taken_and_the_others_are_told_so(
    broker: AsyncBroker, connect: Callable[..., Any]
) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    racing = [agui.AsyncThreads(await connect()) for _ in range(6)]
    lists = [request(entry(mine, YES if n % 2 else NO), run=f"run_{n + 6}") for n in range(6)]
    came = await asyncio.gather(*(each.receive(one) for each, one in zip(racing, lists, strict=True)))
    stored = agui.entry_of(await broker.inbox.get(mine))
    assert stored is not None
    for one, told in zip(lists, came, strict=True):
        assert one.resume is not None
        same = one.resume[0].payload == stored.payload
        assert told.ok is same
        assert same or (isinstance(told, agui.Refusal) and told.code == "conflict")
    assert await broker.runs.ready("agents") == (run,)


@pytest.mark.row("G16")
@pytest.mark.parametrize("payload", [False, 0, "", [], None])
async def test_G16_a_falsy_answer_is_an_answer(
    broker: AsyncBroker, threads: agui.AsyncThreads, payload: Any
) -> None:
    record = await settled(broker, threads, Interrupt.question(), {"status": "resolved", "payload": payload})
    assert record.resolution.answer == Respond(payload=payload, protocol_id="run_6")
    back = agui.entry_of(record)
    assert back is not None
    assert back.to_json().get("payload", "none") == ("none" if payload is None else payload)


@pytest.mark.row("G17")
async def test_G17_a_payload_of_a_cancelled_entry_is_kept(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    said = {"status": "cancelled", "payload": {"toolCall": "call_9"}}
    record = await settled(broker, threads, transfer(), said)
    assert record.state is Settlement.CANCELLED
    assert record.resolution.answer.payload == {"toolCall": "call_9"}
    assert agui.entry_of(record) == agui.ResumeEntry.from_json({**said, "interruptId": record.id})


@pytest.mark.row("G18")
async def test_G18_what_an_entry_has_beside_the_answer_is_kept_apart_and_comes_back(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    beside = {"metadata": {"signature": "ab12", "approver": "kim", "n": None}, "newer": [1]}
    said: dict[str, Any] = {
        "status": "resolved",
        "payload": {"approved": True, "note_to_self": "x"},
        **beside,
    }
    record = await settled(broker, threads, transfer(), said)
    answer = record.resolution.answer
    assert (type(answer), answer.note) == (Approve, None)
    assert answer.metadata["agui"]["metadata"] == beside["metadata"]
    assert (record.resolution.by.id, record.resolution.by.claims) == ("ada", {})
    back = agui.entry_of(record)
    assert back is not None
    assert back.to_json() == {"interruptId": record.id, **said}
    assert Verdict(interrupt_id=record.id, answer=answer, by=record.resolution.by, op="o").answer == answer


NESTED = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"n/a": {"type": "integer"}}}},
    },
    "required": ["approved"],
}


@pytest.mark.row("G19")
@pytest.mark.parametrize("ours", [True, False], ids=["ours", "another agent's"])
@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"approved": "yes"}, "/approved"),
        ({}, ""),
        (None, ""),
        ({"approved": True, "lines": [{"n/a": 1}, {"n/a": "two"}]}, "/lines/1/n~1a"),
    ],
)
async def test_G19_a_payload_that_breaks_the_schema_is_refused_and_the_interrupt_stays_open(
    broker: AsyncBroker, threads: agui.AsyncThreads, payload: Any, path: str, *, ours: bool
) -> None:
    wire = {"id": "int_4", "reason": "confirmation", "responseSchema": NESTED}
    run = await ask(broker, Interrupt.question(schema=NESTED)) if ours else await foreign(broker, wire)
    (mine,) = await ids(broker, run)
    shown = agui.interrupt_of(await broker.inbox.get(mine))
    assert shown.response_schema == NESTED
    came = await threads.receive(request(entry(shown.id, payload)))
    assert isinstance(came, agui.Refusal)
    assert (came.code, came.ids, came.path) == ("INVALID_PAYLOAD", (shown.id,), path)
    assert (await broker.inbox.get(mine)).state is Settlement.OPEN
    fits = {"approved": False, "lines": [{"n/a": 1}]}
    assert isinstance(await threads.receive(request(entry(shown.id, fits))), agui.Plan)


@pytest.mark.row("G19")
async def test_G19_validation_can_be_left_to_the_other_agent(broker: AsyncBroker) -> None:
    wire = {"id": "int_4", "reason": "confirmation", "responseSchema": NESTED}
    await foreign(broker, wire)
    lax = agui.AsyncThreads(broker, agui.Policy(validate=False))
    assert isinstance(await lax.receive(request(entry("int_4", {"approved": "yes"}))), agui.Plan)


@pytest.mark.row("G19")
@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"$ref": "https://example.org/s.json"}, {"$ref": "#/$defs/none"}]
)
async def test_G19_a_schema_that_cannot_be_used_holds_nobody_up(
    broker: AsyncBroker, threads: agui.AsyncThreads, schema: dict[str, Any]
) -> None:
    await foreign(broker, {"id": "int_4", "reason": "confirmation", "responseSchema": schema})
    came = await threads.receive(request(entry("int_4", YES)))
    assert isinstance(came, agui.Plan)
    assert came.warnings == ("responseSchema of 'int_4' cannot be used; no payload is held against it",)


@pytest.mark.row("G20")
async def test_G20_edited_arguments_replace_all_of_them(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    said = {"status": "resolved", "payload": {"approved": True, "editedArgs": {"to": "b"}}}
    record = await settled(broker, threads, transfer(offers=EDITABLE), said)
    assert record.resolution.answer == Edit(arguments={"to": "b"}, protocol_id="run_6")
    async with broker.take(record.run_id) as held:
        assert held.resolution("call_9").answer == Edit(arguments={"to": "b"}, protocol_id="run_6")


@pytest.mark.row("G20")
async def test_G20_arguments_are_edited_only_where_that_is_offered(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    plain = await ask(broker, transfer("call_1"), thread="th_7")
    editable = await ask(broker, transfer("call_2", offers=EDITABLE), thread="th_8")
    for run, thread, edited, code in (
        (plain, "th_7", {"to": "b"}, "NOT_OFFERED"),
        (editable, "th_8", "to b", "INVALID_PAYLOAD"),
    ):
        (mine,) = await ids(broker, run)
        shown = agui.interrupt_of(await broker.inbox.get(mine))
        assert shown.response_schema is not None
        assert ("editedArgs" in shown.response_schema["properties"]) is (run == editable)
        said = entry(mine, {"approved": True, "editedArgs": edited})
        came = await threads.receive(request(said, thread=thread))
        assert isinstance(came, agui.Refusal)
        assert came.code == code
        assert (await broker.inbox.get(mine)).state is Settlement.OPEN
