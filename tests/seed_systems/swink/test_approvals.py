"""Approvals as swink's loop makes them: modes, trust, policies over the whole batch and again over what was edited."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Cancel,
    Edit,
    Invalid,
    InvalidInput,
    Paused,
    Reject,
    Run,
    RunState,
    Settlement,
    gated,
    tool,
)
from broker.interop.swink import (
    SESSION_TRUST,
    ApprovalMode,
    ApprovalRequest,
    Approvals,
    PolicyRefusal,
    Skip,
    Stop,
    TurnStopped,
)
from tests.clients.asking import BEN

Connect = Callable[..., Any]


def call(id: str, cmd: str = "make deploy", name: str = "shell") -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": {"cmd": cmd}}


def careful(asked: ApprovalRequest) -> ApprovalRequest | Skip | None:
    """Deletes nothing, and puts commands into one form."""
    cmd = asked.arguments["cmd"]
    if cmd.startswith("rm"):
        return Skip("it deletes")
    return asked.model_copy(update={"arguments": {"cmd": cmd.strip()}}) if cmd != cmd.strip() else None


class Host:
    """A host with two tools; what they ran is kept."""

    def __init__(self, broker: AsyncBroker) -> None:
        self.broker = broker
        self.ran: list[str] = []
        self.approvals: Callable[[], Approvals] = lambda: Approvals(careful)
        self.turns: list[list[dict[str, Any]]] = [[call("tc_7")]]

        @gated
        async def shell(cmd: str) -> str:
            self.ran.append(cmd)
            return f"did {cmd}"

        @tool()
        def look(cmd: str) -> str:
            self.ran.append(f"look {cmd}")
            return "seen"

        self.tools = [shell, look]

    async def start(self) -> str:
        """A run of this host, at its first pause or its end."""
        self.run_id = (await self.broker.start("host", session="th_2")).run_id
        await self.go()
        return self.run_id

    async def go(self, broker: AsyncBroker | None = None) -> RunState:
        """One attempt; the state of the run after it."""
        async with (broker or self.broker).take(self.run_id) as run:
            await run.finish(await self.loop(run))
        return (await self.broker.runs.get(self.run_id)).state

    async def loop(self, run: Run[Any]) -> list[Any]:
        approvals, said = self.approvals(), list[Any]()
        for turn in self.turns:
            try:
                said += [one["content"] for one in await approvals.calls(run, turn, self.tools)]
            except TurnStopped as stopped:
                said.append(f"stopped: {stopped}")
        return said

    async def asked(self) -> dict[str, str]:
        """The open questions by their call."""
        return {one.interrupt.call_id or "": one.id for one in (await self.broker.inbox.list()).items}

    async def result(self) -> Any:
        return (await self.broker.runs.get(self.run_id)).result


@pytest.fixture
def host(broker: AsyncBroker) -> Host:
    return Host(broker)


@pytest.mark.row("S17")
async def test_S17_edited_arguments_are_judged_again_before_they_count(host: Host, connect: Connect) -> None:
    """Off: `Approvals.check` that hands edits on as they are."""
    await host.start()
    (one,) = (await host.asked()).values()
    other, approvals = await connect(by=BEN), host.approvals()
    for value, problem in (
        ({"cmd": "rm -rf ."}, "is refused: it deletes"),
        ({"command": "make"}, "does not fit the tool"),
        ("make", "does not fit the tool"),
        ({"cmd": 7}, "is refused: a policy failed (AttributeError)"),
    ):
        told = await approvals.answer(
            other, one, {"decision": "approved_with", "value": value}, tools=host.tools
        )
        assert isinstance(told, Invalid)
        assert (told.field, told.problem) == ("value", problem)
        assert (await other.inbox.get(one)).state is Settlement.OPEN
    said = {"decision": "approved_with", "value": {"cmd": " make deploy-staging "}}
    assert isinstance(await approvals.answer(other, one, said, tools=host.tools), Accepted)
    assert (await other.inbox.get(one)).resolution.answer == Edit(arguments={"cmd": "make deploy-staging"})
    assert await host.go(other) is RunState.FINISHED
    assert host.ran == ["make deploy-staging"]


@pytest.mark.row("S17")
@pytest.mark.parametrize("cmd", ["rm -rf .", " make "])
async def test_S17_an_edit_that_went_round_the_policies_does_not_run(
    host: Host, connect: Connect, cmd: str
) -> None:
    """Off: `guarded`, the last look before a tool runs. The answer came by the broker's own door."""
    await host.start()
    (one,) = (await host.asked()).values()
    await (await connect(by=BEN)).inbox.answer(one, Edit(arguments={"cmd": cmd}))
    assert await host.go() is RunState.FINISHED
    assert host.ran == []
    assert "PolicyRefusal" in (await host.result())[0]


def test_a_tool_called_by_hand_is_judged_too() -> None:
    ran: list[str] = []

    @gated
    def note(cmd: str) -> None:
        ran.append(cmd)

    tools = Approvals(careful, mode=ApprovalMode.BYPASSED).tools([note])
    assert tools["note"].gated is False
    tools["note"].function("make")
    with pytest.raises(PolicyRefusal):
        tools["note"].function("rm x")
    assert ran == ["make"]


@pytest.mark.row("S18")
async def test_S18_an_answer_that_is_not_understood_leaves_the_question_open(host: Host) -> None:
    await host.start()
    (one,) = (await host.asked()).values()
    for bad in ({"decision": "maybe"}, {"decision": "approved", "value": {}}, "approved", None):
        with pytest.raises(InvalidInput):
            await host.approvals().answer(host.broker, one, bad)
    assert (await host.broker.inbox.get(one)).state is Settlement.OPEN
    assert host.ran == []


@pytest.mark.row("S18")
async def test_S18_a_handler_that_fails_has_rejected(host: Host) -> None:
    asked = ApprovalRequest(id="tc_7", name="shell", arguments={"cmd": "make"}, requires_approval=True)

    async def later(_: ApprovalRequest) -> Any:
        return {"decision": "approved"}

    async def dies(_: ApprovalRequest) -> Any:
        raise OSError

    approvals = host.approvals()
    assert await approvals.ask(later, asked) == Approve()
    assert await approvals.ask(lambda _: Edit(arguments={"cmd": "x"}), asked) == Edit(arguments={"cmd": "x"})
    fails: list[Callable[[ApprovalRequest], Any]] = [
        dies,
        lambda _: 1 / 0,
        lambda _: {"decision": "maybe"},
        lambda _: None,
        lambda _: {"decision": "approved_with", "value": {"cmd": "rm -rf ."}},
    ]
    assert [type(await approvals.ask(one, asked)) for one in fails] == [Reject] * 5

    shown = asyncio.Event()

    async def waits(_: ApprovalRequest) -> Any:
        shown.set()
        await asyncio.Event().wait()

    waiting = asyncio.create_task(approvals.ask(waits, asked))
    await shown.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.row("S19")
@pytest.mark.parametrize(
    ("mode", "trusted", "asks"),
    [
        (ApprovalMode.ENABLED, (), {"tc_7", "tc_8"}),
        (ApprovalMode.ENABLED, ("shell",), {"tc_7", "tc_8"}),
        (ApprovalMode.SMART, (), {"tc_7"}),
        (ApprovalMode.SMART, ("shell",), set()),
        (ApprovalMode.BYPASSED, (), set()),
    ],
)
async def test_S19_modes_decide_what_is_asked(
    host: Host, mode: ApprovalMode, trusted: tuple[str, ...], asks: set[str]
) -> None:
    host.approvals = lambda: Approvals(careful, mode=mode, trusted=trusted)
    host.turns = [[call("tc_7"), call("tc_8", "x", name="look")]]
    await host.start()
    assert set(await host.asked()) == asks
    assert len(host.ran) == 2 - len(asks)
    assert await host.broker.active("th_2") == ({host.run_id: 1} if asks else {})


@pytest.mark.row("S19")
async def test_S19_trust_is_given_with_an_answer_and_known_to_the_next_worker(
    host: Host, connect: Connect
) -> None:
    host.turns = [[call("tc_7")], [call("tc_9", "make clean")], [call("tc_10", "make all")]]
    await host.start()
    (one,) = (await host.asked()).values()
    await host.broker.inbox.answer(one, Approve(note=SESSION_TRUST))
    assert await host.go(await connect()) is RunState.FINISHED
    assert host.ran == ["make deploy", "make clean", "make all"]
    host.ran.clear()
    await host.start()
    (one,) = (await host.asked()).values()
    await host.broker.inbox.answer(one, Approve(note="once"))
    assert await host.go(await connect()) is RunState.WAITING
    assert host.ran == ["make deploy"]


async def test_a_question_that_was_asked_keeps_its_mode(host: Host) -> None:
    """A switch to `bypassed` lets nothing through that somebody was asked about."""
    await host.start()
    (one,) = (await host.asked()).values()
    await host.broker.inbox.answer(one, Reject(reason="no"))
    host.approvals = lambda: Approvals(careful, mode=ApprovalMode.BYPASSED)
    assert await host.go() is RunState.FINISHED
    assert host.ran == []


@pytest.mark.row("S20")
async def test_S20_what_is_shown_is_what_policies_left(host: Host) -> None:
    host.turns = [[call("tc_7", "  make deploy ")]]
    await host.start()
    ((_, one),) = (await host.asked()).items()
    shown = ApprovalRequest.of((await host.broker.inbox.get(one)).interrupt)
    assert shown.to_json() == {
        "id": "tc_7", "name": "shell", "arguments": {"cmd": "make deploy"}, "requires_approval": True,
    }  # fmt: skip
    with_context = shown.model_copy(update={"context": {"cost": 3}})
    paused = await host.broker.suspend("host", with_context.interrupt(), session="th_3")
    again = ApprovalRequest.of((await host.broker.inbox.get(paused.interrupt_ids[0])).interrupt)
    assert again.to_json() == shown.to_json() | {"context": {"cost": 3}}


@pytest.mark.row("S21")
async def test_S21_a_rejection_leaves_its_siblings_untouched(host: Host) -> None:
    host.turns = [[call("tc_7"), call("tc_8", "make docs"), call("tc_9", "rm -rf .")]]
    await host.start()
    asked = await host.asked()
    assert set(asked) == {"tc_7", "tc_8"}, "what a policy skips is not asked about"
    await host.approvals().answer(host.broker, asked["tc_7"], {"decision": "rejected"}, by=BEN)
    await host.approvals().answer(host.broker, asked["tc_8"], {"decision": "approved"}, by=BEN)
    assert await host.go() is RunState.FINISHED
    assert host.ran == ["make docs"]
    assert await host.result() == [
        "Error (rejected): Not approved by ben: rejected. It was not run.",
        "did make docs",
        "Error (skipped): it deletes. It was not run.",
    ]


async def test_a_stop_ends_the_turn_before_anybody_is_asked(host: Host) -> None:
    host.approvals = lambda: Approvals(
        lambda asked: Stop("budget spent") if asked.id == "tc_8" else None, careful
    )
    host.turns = [[call("tc_7"), call("tc_8")]]
    await host.start()
    assert await host.asked() == {}
    assert await host.result() == ["stopped: budget spent"]
    assert host.ran == []


async def test_what_a_model_got_wrong_goes_back_to_it(host: Host) -> None:
    host.turns = [[{"id": "tc_7", "name": "shell", "arguments": "{"}, call("tc_8", name="gone")]]
    await host.start()
    result = await host.result()
    assert "its arguments are no JSON" in result[0]
    assert "there is no tool gone" in result[1]


@pytest.mark.row("S22")
async def test_S22_asked_then_decided_then_run(host: Host) -> None:
    """The order on record, and that of the effects."""
    order: list[str] = []

    @gated
    async def shell(cmd: str) -> str:
        order.append("started")
        return cmd

    host.tools = [shell]
    watching = asyncio.create_task(_first(host.broker))
    await host.start()
    order += await watching
    (one,) = (await host.asked()).values()
    await host.broker.inbox.answer(one, Approve())
    order.append("resolved")
    await host.go()
    assert order == ["requested", "resolved", "started"]
    record = [one.event for one in await host.broker.history("th_2")]
    assert record == ["started", "leased", "suspended", "resolved", "leased", "finished"]


async def _first(broker: AsyncBroker) -> list[str]:
    async for _ in broker.inbox.follow("approvals"):
        return ["requested"]
    return []


def test_what_an_unknown_question_is_no_request_for() -> None:
    from broker import Interrupt  # noqa: PLC0415 - used here only

    with pytest.raises(InvalidInput, match=r"^interrupt is not about a call"):
        ApprovalRequest.of(Interrupt.question("why?"))
    assert (
        Approvals().check(
            ApprovalRequest(id="a", name="b", arguments=None, requires_approval=False), Cancel()
        )
        == Cancel()
    )
    assert issubclass(Paused, BaseException)
