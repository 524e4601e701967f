"""P12: bad ids, names and namespaces change nothing, and the error names the field, the fault and what is allowed.

Through the front door, with every key compared before and after (see `refusing.refused`).
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import AsyncBroker
from broker.core.answers import Approve, Cancel, Reject
from broker.core.settings import Settings
from broker.errors import InvalidInput, UnknownId, WrongNamespace
from broker.testing import RunningServer

from .refusing import CANARY, SECRET, Setting, refused
from .snapshot import changed
from .world import ANN, World, approval

BAD_IDS = {
    "empty": ("", "is empty"),
    "too long": ("x" * 257, "has 257 characters"),
    "a control character": ("a\nb", "control character"),
    "NUL": ("a\x00b", "control character"),
    "delete": ("a\x7f", "control character"),
    "an opening brace": ("a{b", "brace"),
    "a closing brace": ("a}b", "brace"),
    "half a surrogate pair": ("a\ud800", "surrogate"),
    "white space at the end": ("a ", "white space"),
    "no text": (7, "is not text"),
}

NO_RUN = "run_0000" + "0" * 26
NO_INTERRUPT = "int_0000" + "0" * 32


# ids ----------------------------------------------------------------------------------------------------------------

Use = Callable[[Setting, Any], Awaitable[object]]

ID_USES: dict[str, Use] = {
    "start session": lambda s, x: s.broker.start("airline", session=x),
    "start key": lambda s, x: s.broker.start("airline", session="s", key=x),
    "suspend session": lambda s, x: s.broker.suspend("airline", approval(), session=x),
    "suspend run_id": lambda s, x: s.broker.suspend("airline", approval(), session="s", run_id=x),
    "answer interrupt_id": lambda s, x: s.broker.inbox.answer(x, Approve()),
    "answer op": lambda s, x: s.broker.inbox.answer(s.gate, Approve(), op=x),
    "get interrupt_id": lambda s, x: s.broker.inbox.get(x),
    "answer_call session": lambda s, x: s.broker.inbox.answer_call(x, "c1", Approve()),
    "answer_call call_id": lambda s, x: s.broker.inbox.answer_call("s_1", x, Approve()),
    "answer_call run_id": lambda s, x: s.broker.inbox.answer_call("s_1", "c1", Approve(), run_id=x, seq=2),
    "answer_call op": lambda s, x: s.broker.inbox.answer_call("s_1", "c9", Approve(), op=x),
    "active session": lambda s, x: s.broker.active(x),
    "history session": lambda s, x: s.broker.history(x),
    "runs.get run_id": lambda s, x: s.broker.runs.get(x),
    "withdraw run_id": lambda s, x: s.broker.runs.withdraw(x),
    "withdraw op": lambda s, x: s.broker.runs.withdraw(s.waiting, op=x),
    "requeue run_id": lambda s, x: s.broker.dead.requeue(x),
    "wait id": lambda s, x: s.broker.wait(x, 1),
}


@pytest.mark.parametrize("use", ID_USES.values(), ids=ID_USES)
async def test_a_bad_id_is_refused_wherever_it_is_given(setting: Setting, use: Use) -> None:
    for value, problem in BAD_IDS.values():
        code, field, said = await refused(setting, use(setting, value))
        assert (code, problem in said) == ("invalid", True), said
        assert field


NAME_USES: dict[str, Use] = {
    "agent": lambda s, x: s.broker.start(x, session="s"),
    "queue": lambda s, x: s.broker.start("airline", session="s", queue=x),
    "build": lambda s, x: s.broker.start("airline", session="s", build=x),
    "move queue": lambda s, x: s.broker.runs.move(s.waiting, x),
}


@pytest.mark.parametrize("use", NAME_USES.values(), ids=NAME_USES)
async def test_a_bad_name_is_refused(setting: Setting, use: Use) -> None:
    for bad in ("a b", "a:b", "é", "{a}", "-a", "x" * 65, "a\n", "a/b"):
        code, _field, said = await refused(setting, use(setting, bad))
        assert code == "invalid", said


@pytest.mark.parametrize("name", ["", "A", "a:b", "a b", "a*", "{a", "é", "x" * 65, "_a", None])
def test_a_bad_namespace_is_refused_before_anything_is_sent(server: RunningServer, name: Any) -> None:
    with pytest.raises(InvalidInput) as fault:
        AsyncBroker(server.url, namespace=name)
    assert fault.value.field == "namespace"


UNKNOWN: dict[str, Callable[[Setting], Awaitable[object]]] = {
    "runs.get": lambda s: s.broker.runs.get(NO_RUN),
    "withdraw": lambda s: s.broker.runs.withdraw(NO_RUN),
    "requeue": lambda s: s.broker.dead.requeue(NO_RUN),
    "move": lambda s: s.broker.runs.move(NO_RUN, "q"),
    "inbox.get": lambda s: s.broker.inbox.get(NO_INTERRUPT),
    "inbox.get, foreign": lambda s: s.broker.inbox.get("none-of-ours"),
    "answer, foreign": lambda s: s.broker.inbox.answer("none-of-ours", Approve()),
    "an interrupt for a run": lambda s: s.broker.runs.get(s.gate),
    "wait, foreign": lambda s: s.broker.wait("whatever", 1),
    "wait for a run": lambda s: s.broker.wait(NO_RUN, 1),
    "wait for an interrupt": lambda s: s.broker.wait(NO_INTERRUPT, 1),
}


@pytest.mark.parametrize("use", UNKNOWN.values(), ids=UNKNOWN)
async def test_an_unknown_id_is_said_to_be_unknown(
    setting: Setting, use: Callable[[Setting], Awaitable[object]]
) -> None:
    assert (await refused(setting, use(setting)))[0] == "unknown"


async def test_an_answer_to_an_unknown_interrupt_leaves_its_receipt_only(setting: Setting) -> None:
    """Rule 9."""
    before = setting.world.snapshot("unknown")
    assert (await setting.broker.inbox.answer(NO_INTERRUPT, Approve(note=CANARY))).code == "unknown"
    assert changed(before, setting.world.snapshot("unknown")) == []


# namespaces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted",
    [{"partitions": 4}, {"settings": Settings(keep_settled=timedelta(hours=3))}],
    ids=["partitions", "retention"],
)
async def test_a_namespace_that_is_otherwise_is_refused(
    server: RunningServer, setting: Setting, wanted: dict[str, Any]
) -> None:
    """Design section 5: the number of partitions is fixed; a mismatch is an error that names both."""
    other = AsyncBroker(server.url, namespace=setting.broker.namespace, **wanted)
    code, _field, said = await refused(setting, other.open())
    await other.aclose()
    assert code == "wrong_namespace"
    assert setting.broker.namespace in said


@pytest.mark.parametrize(
    ("field", "value"),
    [("wire", "9"), ("partitions", "0"), ("partitions", "x"), ("wire", ""), ("keep_settled", "x")],
)
async def test_settings_of_another_release_are_refused(
    server: RunningServer, world: World, field: str, value: str
) -> None:
    meta = f"{{{world.namespace}}}:meta"
    world.client.hset(meta, mapping={"wire": "1", "partitions": "1", field: value})
    other = AsyncBroker(server.url, namespace=world.namespace)
    with pytest.raises(WrongNamespace):
        await other.open()
    await other.aclose()


@pytest.mark.parametrize("partitions", [0, -1, 1025])
def test_a_count_of_partitions_out_of_range_is_refused(server: RunningServer, partitions: int) -> None:
    with pytest.raises(InvalidInput) as fault:
        AsyncBroker(server.url, namespace="a", partitions=partitions)
    assert fault.value.field == "partitions"


@pytest.mark.report("RA20")
async def test_ids_of_one_namespace_mean_nothing_in_another(
    server: RunningServer, setting: Setting, new_namespace: Callable[[], str]
) -> None:
    """P13, RA20: nothing is read, listed or settled across namespaces."""
    async with AsyncBroker(server.url, namespace=new_namespace(), by=ANN) as other:
        assert (await other.inbox.answer(setting.gate, Approve())).code == "unknown"
        with pytest.raises(UnknownId):
            await other.inbox.get(setting.gate)
        with pytest.raises(UnknownId):
            await other.runs.get(setting.waiting)
        assert (await other.inbox.list()).items == ()
        assert await other.active("s_1") == {}
    assert (await setting.broker.inbox.get(setting.gate)).state == "open"


# secrets ------------------------------------------------------------------------------------------------------------


async def test_nothing_secret_is_shown_while_all_goes_well(setting: Setting) -> None:
    """P13: reprs of everything a caller gets, and every doorbell entry, over a whole life."""
    broker, world = setting.broker, setting.world
    world.waiters.wait()
    page = await broker.inbox.list()
    shown = [
        page,
        *page.items,
        setting.run,
        await broker.runs.get(setting.waiting),
        await broker.runs.state(setting.waiting),
    ]
    shown.append(await broker.inbox.answer(setting.gate, Reject(reason=CANARY)))
    shown.append(await broker.inbox.answer(setting.form, Cancel(reason=CANARY, payload=SECRET)))
    shown.append(await broker.complete(setting.job, SECRET))
    async with broker.take(setting.waiting) as run:
        shown += [run, run.resolutions, run.interrupts, run.state]
        await run.finish(SECRET)
    shown += [await broker.runs.get(setting.waiting), *await broker.history("s_1"), await broker.fleet()]
    await setting.run.fail("Boom", "an error text is for the record")
    assert CANARY not in repr(shown)
    for name in (world.key("interrupts"), world.key("dispositions")):
        assert CANARY not in repr(world.client.xrange(name))
    assert world.waiters.hear()
    assert CANARY not in repr(world.waiters.heard)
