"""What a script goes on from when its worker, its tools or its namespace are others than before."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from broker import (
    AsyncBroker,
    Conflict,
    Corrupt,
    InterruptState,
    InvalidInput,
    Principal,
    Refused,
    RunState,
    UnknownId,
    tool,
)
from broker.interop import adk
from broker.store.keys import Keyspace
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock
from tests.journal.travel import World
from tests.worker.fleet import ROOT, ended

from .script import Player, completion, error, value
from .serving import PATIENT, worker


async def killed(url: str, namespace: str, folder: Path, moment: str) -> int:
    """How a worker process ends that dies at this moment."""
    command = [sys.executable, "-m", "tests.seed_systems.adk.serving", url, namespace, str(folder), moment]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=subprocess.DEVNULL)
    return await process.wait()


@pytest.fixture
async def quick(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A host whose namespace gives up on a dead worker soon."""
    async with AsyncBroker(
        server.url, namespace=namespace, settings=PATIENT, by=Principal.local("host")
    ) as broker:
        yield broker


@pytest.mark.row("A6", "A7", "A8")
async def test_a_script_survives_the_death_of_its_workers(
    quick: AsyncBroker, server: RunningServer, namespace: str, tmp_path: Path
) -> None:
    """Killed after the effect: it runs again, under the same key. Killed after its result: it does not.

    Off: the checkpoint ahead of the call in `CodeAct.call`; end.lua that records nothing.
    """
    started = await quick.start("analyst", session="s_1")
    session = adk.AsyncAgentSession(quick, "s_1", "analyst", run_id=started.run_id)
    seen = []
    for moment in ("after the effect of 7", "after end 7", "after the effect of 8"):
        assert await killed(server.url, namespace, tmp_path, moment) == -9
        frozen = await session.load()
        assert frozen is not None
        seen.append((frozen.call.entry, frozen.disposition.to_json()))
    assert seen == [
        ("7", {"kind": "pending_result"}),
        ("7", value("found ada")),
        ("8", {"kind": "pending_result"}),
    ]
    last = worker(server.url, namespace, tmp_path)
    serving = asyncio.create_task(last.serve())
    run = await ended(quick, started.run_id)
    last.stop()
    await serving
    assert run.result == [value("found ada"), value("found bob")]
    done = World(tmp_path).done()
    assert [(call, attempt) for call, _, attempt in done] == [("7", "1"), ("7", "2"), ("8", "1"), ("8", "2")]
    assert len({key for call, key, _ in done}) == 2
    assert await session.load() is None


class Bank:
    def __init__(self) -> None:
        self.did: list[Any] = []

    @property
    def tools(self) -> dict[str, Callable[..., Any]]:
        async def wire_transfer(amount: int) -> str:
            self.did.append(amount)
            return f"sent {amount}"

        async def lookup() -> str:
            return "found"

        return {"wire_transfer": wire_transfer, "lookup": lookup}


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def player(timed: AsyncBroker, clock: Clock, bank: Bank) -> Player:
    """A script that pays, and is asked about it."""
    return Player(timed, clock, bank.tools, ("wire_transfer", {"amount": 40}), policy="always")


def at(host: AsyncBroker) -> adk.AsyncAgentSession:
    return adk.AsyncAgentSession(host, "s", "airline")


@pytest.mark.row("A18")
@pytest.mark.parametrize("change", ["gone", "new"])
async def test_a_changed_roster_is_refused_and_the_checkpoint_kept(
    player: Player, bank: Bank, host: AsyncBroker, change: str
) -> None:
    """Also where the tool of the call is still there. Off: `check_roster`."""
    await player.start()
    before = await at(host).load()
    await at(host).decide(*adk.Decision.all_of({"7": "approve"}))
    whole = player.tools
    player.tools = {"wire_transfer": whole["wire_transfer"]} | (
        whole | {"extra": print} if change == "new" else {}
    )
    assert await player.go() is RunState.READY
    assert isinstance(player.error, adk.RosterChanged)
    assert (player.error.gone, player.error.new) == (
        (("lookup",), ()) if change == "gone" else ((), ("extra",))
    )
    assert player.error.code == "roster_mismatch"
    assert "roster_mismatch" in (await player.record()).errors[-1]
    assert (await at(host).load(), bank.did) == (before, [])
    player.tools = whole
    assert await player.go() is RunState.FINISHED
    assert (await player.result(), bank.did) == ([value("sent 40")], [40])


@pytest.mark.row("A24")
async def test_a_failure_a_time_out_and_a_crash_of_a_tool_are_raised_in_the_script(
    timed: AsyncBroker, clock: Clock
) -> None:
    async def fails() -> None:
        raise LookupError("no such table")

    @tool(timeout=timedelta(milliseconds=20))
    async def hangs() -> None:
        await asyncio.Event().wait()

    async def exits() -> None:
        raise SystemExit("bye")

    lines = [(name, dict[str, Any]()) for name in ("fails", "hangs", "exits", "unheard_of")]
    player = Player(timed, clock, [fails, hangs, exits], *lines, ("fails", {"x": 1}))
    assert await player.start() is RunState.FINISHED
    result = await player.result()
    assert result[0] == error("no such table")
    assert result[1]["Raise"].startswith("timed out after 0.02 s")
    assert result[2:] == [
        error("bye"), error("there is no tool unheard_of"), error("fails takes other arguments")
    ]  # fmt: skip


@pytest.mark.row("A19")
async def test_a_null_state_delta_clears_and_twice_is_no_harm(player: Player, host: AsyncBroker) -> None:
    await player.start()
    await at(host).apply({"something_else": None})
    assert await at(host).load() is not None
    for _ in range(2):
        await at(host).apply({"codeact_pending": None})
        assert (await at(host).load(), await host.active("s")) == (None, {})
    assert (await player.record()).state is RunState.WITHDRAWN
    assert await at(host).clear() == ()


@pytest.mark.row("A4")
async def test_a_disposition_that_is_not_known_stays_active_and_approves_nothing(
    player: Player, host: AsyncBroker, wire: dict[str, Any], bank: Bank
) -> None:
    """It is listed as what it is; only somebody's cancel ends it, and the script is told so."""
    odd = wire | {"disposition": {"kind": "awaiting_review", "board": 1}}
    await at(host).apply({"codeact_pending": odd})
    kept = await at(host).load()
    assert kept is not None
    assert kept.to_json() == odd
    (told,) = await at(host).decide(*adk.Decision.all_of({"7": "approve"}))
    assert (told.accepted, told.open) == (False, True)
    assert await at(host).requests() == ()
    wrong: tuple[Any, ...] = ("awaiting_review", {}, None)
    for broken in wrong:
        with pytest.raises(InvalidInput, match="disposition"):
            await at(host).apply({"codeact_pending": wire | {"disposition": broken}})
    assert await at(host).load() == kept
    assert len(await host.active("s")) == 1
    (player.run_id,) = await host.active("s")
    (asked,) = (await host.inbox.list()).items
    assert (asked.interrupt.kind.type, asked.deadline) == ("awaiting_review", None)
    await host.cancel(asked.id, "nobody knows it")
    player.handler = resumed_alone(player)
    assert await player.go() is RunState.FINISHED
    assert "Given up by host: nobody knows it" in (await player.result())["Raise"]
    assert bank.did == []


def resumed_alone(player: Player) -> Callable[[Any], Any]:
    """A handler that only says what the pending call came to."""

    async def handler(run: Any) -> Any:
        return adk.Resolved(record=await adk.CodeAct(run, player.tools).resume()).to_json()

    return handler


@pytest.mark.row("A4")
async def test_a_checkpoint_that_cannot_be_read_is_an_error_and_active(
    host: AsyncBroker, wire: dict[str, Any], server: RunningServer, namespace: str
) -> None:
    saved = await at(host).save(adk.Checkpoint.from_json(wire))
    key = Keyspace(namespace, 1).partition(0).key("state", saved.run_id)
    broken = InterruptState(framework="adk-rust codeact", opaque=b"?")
    with redis.Redis.from_url(server.url) as client:
        client.set(key, broken.to_bytes())
    with pytest.raises(Corrupt):
        await at(host).load()
    assert await host.active("s") == {saved.run_id: 1}


@pytest.mark.row("A4", "A7")
@pytest.mark.parametrize("given", [None, {"kind": "awaiting_review"}])
async def test_a_run_started_with_nothing_to_go_on_from_says_so(
    timed: AsyncBroker, clock: Clock, wire: dict[str, Any], given: Any, bank: Bank
) -> None:
    player = Player(timed, clock, bank.tools)
    player.handler = resumed_alone(player)
    value = {"codeact_pending": wire | {"disposition": given}} if given else None
    assert await player.start(value) is RunState.READY
    assert isinstance(player.error, Exception)
    assert ("awaiting_review" if given else "no checkpoint") in str(player.error)
    assert bank.did == []


@pytest.mark.row("A1", "A5", "A7")
@pytest.mark.parametrize(
    ("disposition", "result", "did"),
    [
        ({"kind": "pending_result"}, value("sent 40"), [40]),
        (value({"rows": 3}), value({"rows": 3}), []),
        (value(None), value(None), []),
        (error("no such table"), error("no such table"), []),
        ({"kind": "awaiting_confirmation"}, value("sent 40"), [40]),
        ({"kind": "awaiting_completion"}, value("v-9"), []),
        ({"kind": "awaiting_completion", "pending_handle": "j-9"}, value("v-9"), []),
    ],
)
async def test_a_checkpoint_from_a_file_goes_on_by_its_disposition(
    player: Player, host: AsyncBroker, wire: dict[str, Any], bank: Bank, tmp_path: Path,
    disposition: dict[str, Any], result: Any, did: list[int],
) -> None:  # fmt: skip
    """Saved by one process, answered by another, gone on with by a worker; saving it again is a repeat.

    A long-running tool is not started again: its job is under way.
    """
    file = tmp_path / "codeact_pending.json"
    adk.Checkpoint.from_json(wire | {"disposition": disposition, "snapshot": list(b"[]")}).dump(file)
    checkpoint, session = adk.Checkpoint.load(file), adk.AsyncAgentSession(player.broker, "s", "airline")
    saved = await session.save(checkpoint)
    kind = disposition["kind"]
    if kind.startswith("awaiting"):
        assert (await session.save(checkpoint)).interrupt_ids == saved.interrupt_ids
        assert await session.load() == checkpoint
        if kind == "awaiting_confirmation":
            await at(host).decide(*adk.Decision.all_of({"7": "approve"}))
        else:
            await at(host).complete(completion("wire_transfer", "v-9"))
        assert (await session.save(checkpoint)).code == "replayed"
    player.run_id, player.how = saved.run_id, {}
    assert await player.go() is RunState.FINISHED
    assert (await player.result(), bank.did) == ([result], did)


async def test_of_two_checkpoints_the_newer_one_counts(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker, wire: dict[str, Any]
) -> None:
    """Saved, gone on with, and its worker dies in the next call: the script goes on from there.

    Off: the numbers of the pauses in `found`.
    """
    did: list[str] = []

    async def lookup(name: str) -> str:
        did.append(name)
        if did == ["ada", "bob"]:
            made.die()
        return f"found {name}"

    lines = (("lookup", {"name": "ada"}), ("lookup", {"name": "bob"}))
    made = Player(timed, clock, [lookup], *lines)
    call = {"call_id": 7, "tool": "lookup", "args": {"name": "ada"}}
    saved = await at(host).save(
        adk.Checkpoint.from_json(wire | {"call": call, "snapshot": list(b"[]"), "tool_roster": ["lookup"]})
    )
    await at(host).decide(*adk.Decision.all_of({"7": "approve"}))
    made.run_id = saved.run_id
    assert await made.go() is RunState.LEASED
    found = await at(host).load()
    assert found is not None
    assert (found.call.entry, found.disposition) == ("8", adk.PendingResult())
    assert await made.go() is RunState.FINISHED
    assert (await made.result(), did) == ([value("found ada"), value("found bob")], ["ada", "bob", "bob"])


async def test_a_checkpoint_from_outside_is_newer_than_what_a_worker_kept_before_it(
    player: Player, host: AsyncBroker, wire: dict[str, Any]
) -> None:
    await player.start()
    later = adk.Checkpoint.from_json(wire | {"call": {"call_id": 9, "tool": "lookup", "args": {}}})
    await at(host).save(later)
    assert await at(host).load() == later


async def test_another_checkpoint_takes_the_place_of_the_one_before(
    host: AsyncBroker, wire: dict[str, Any]
) -> None:
    """One is pending at a time; while an inline one is with a worker, nothing is put in its place."""
    session = at(host)
    first = await session.save(adk.Checkpoint.from_json(wire))
    later = adk.Checkpoint.from_json(wire | {"call": {"call_id": 8, "tool": "lookup", "args": {}}})
    second = await session.save(later)
    assert (second.run_id, await session.load()) == (first.run_id, later)
    assert (await host.inbox.get(first.interrupt_ids[0])).state == "superseded"
    assert [one.function_call_id for one in await session.requests()] == ["8"]
    with pytest.raises(Refused) as raised:
        await session.save(adk.Checkpoint.from_json(wire | {"disposition": {"kind": "pending_result"}}))
    assert isinstance(raised.value.outcome, Conflict)


@pytest.mark.row("A20")
async def test_a_checkpoint_travels_to_another_namespace(
    player: Player, host: AsyncBroker, server: RunningServer, new_namespace: Callable[[], str],
    tmp_path: Path, bank: Bank,
) -> None:  # fmt: skip
    """Exported from one, where it is then cleared, and gone on with in the other."""
    await player.start()
    found = await at(host).load()
    assert found is not None
    found.dump(tmp_path / "codeact_pending.json")
    await at(host).clear()
    other_one = new_namespace()
    async with AsyncBroker(
        server.url, namespace=other_one, by=Principal.local("me"), rendering=MOVABLE
    ) as elsewhere:
        session = at(elsewhere)
        saved = await session.save(adk.Checkpoint.load(tmp_path / "codeact_pending.json"))
        assert await session.load() == found
        await session.decide(*adk.Decision.all_of({"7": "approve"}))
        there = Clock(server.url, other_one)
        other = Player(elsewhere, there, bank.tools, *player.lines, policy="always")
        other.run_id = saved.run_id
        assert await other.go() is RunState.FINISHED
        assert (await other.result(), bank.did) == ([value("sent 40")], [40])
        there.close()


@pytest.mark.row("A21")
async def test_input_that_comes_while_an_agent_waits_is_kept_in_order(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker, bank: Bank
) -> None:
    """It is in the transcript of what the script does next, once; repeating it under an `op` is one message.

    Off: guard `say-once`; `heard` of a checkpoint.
    """
    pay = ("wire_transfer", {"amount": 40})
    player = Player(timed, clock, bank.tools, pay, pay, pay, policy="always")
    await player.start()
    session = at(host)
    assert await session.queue("wait", op="m-1") == 1
    assert await session.queue("wait", op="m-1") == 1
    assert await at(timed).queue({"parts": ["make it quick"]}) == 2
    said = ["wait", {"parts": ["make it quick"]}]
    for call in ("7", "8"):
        await session.decide(*adk.Decision.all_of({call: "approve"}))
        assert await player.go() is RunState.WAITING
        found = await session.load()
        assert found is not None
        assert found.transcript == said
        said.append(f"after {call}")
        await session.queue(f"after {call}")
    await session.decide(*adk.Decision.all_of({"9": "approve"}))
    assert await player.go() is RunState.FINISHED
    assert list(await host.runs.said(player.run_id)) == said
    with pytest.raises(UnknownId):
        await session.queue("too late")
