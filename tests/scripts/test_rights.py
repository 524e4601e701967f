"""What a credential may do, as the server enforces it, on a Valkey and, where one is found, on a Redis."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from broker import Broker
from broker.core.answers import Approve, Complete
from broker.core.models import OnExpiry
from broker.core.states import Mode
from broker.errors import InvalidInput
from broker.renewer import run_command
from broker.store import namespace, scripts
from broker.store.commands import sweep
from broker.store.commands.values import Command
from broker.store.keys import SEGMENTS, Keyspace
from broker.store.roles import COMMANDS, Role, acl_rules
from broker.testing import ServerProcess, find_servers
from tests.records import poke

from .snapshot import changed
from .test_keys import tour
from .test_repeats import LIVES, Tape
from .world import ANN, World, approval, completion

NAME = "airline"
DENIED = re.compile(r"NOPERM|permission")
FORBIDDEN = ("config", "client|unblock", "waitaof", "function")


def families() -> list[Any]:
    """The first program found of each family."""
    found = {source.version.partition("-")[0]: source for source in reversed(find_servers(containers=False))}
    return [pytest.param(s.binary, id=f) for f, s in sorted(found.items()) if s.binary and not s.missing]


@pytest.fixture(params=families())
def own(request: pytest.FixtureRequest, start_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of this test's own."""
    return start_server(program=request.param)


@pytest.fixture
def world(own: ServerProcess) -> Iterator[World]:
    """The default user's view."""
    made = World(own.url, NAME)
    yield made
    made.close()


def as_user(world: World, own: ServerProcess, name: str, *rules: str) -> World:
    """The same namespace as a user with these rules sees it."""
    world.client.execute_command("ACL", "SETUSER", name, "reset", "on", f">{name}-password", *rules)
    url = own.url.replace("unix://", f"unix://{name}:{name}-password@")
    user = World(url, NAME)
    user._ahead = world._ahead
    return user


def clock(*rules: str) -> tuple[str, ...]:
    """The rules, and the clock that only the scripts of tests read."""
    return (*rules, f"~{{{NAME}:*}}{SEGMENTS['clock']}", f"~{{{NAME}}}{SEGMENTS['clock']}")


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_every_step_works_for_a_user_limited_to_its_namespace(
    world: World, own: ServerProcess, life: Callable[[Tape], None]
) -> None:
    user = as_user(world, own, "limited", "+@all", f"~{{{NAME}:*", f"~{{{NAME}}}*", f"&{{{NAME}:*")
    life(Tape(user))
    assert world.snapshot()
    with pytest.raises(redis.exceptions.NoPermissionError):
        World(user.url, "airlines").started()


def test_every_script_works_without_what_managed_services_forbid(world: World, own: ServerProcess) -> None:
    """Decisions, portable core: no CONFIG, CLIENT UNBLOCK, WAITAOF, FUNCTION."""
    known = [command for command in FORBIDDEN if is_known(world, command)]
    user = as_user(world, own, "managed", "+@all", "~*", "&*", *(f"-{command}" for command in known))
    with pytest.raises(redis.exceptions.NoPermissionError):
        user.client.config_get("maxmemory")
    tour(user)


def is_known(world: World, command: str) -> bool:
    """Whether this server has the command (Redis 7.0 has no WAITAOF)."""
    try:
        world.client.execute_command("ACL", "SETUSER", "nobody", f"-{command}")
    except redis.ResponseError:
        return False
    return True


def test_every_script_works_for_those_who_decide(world: World, own: ServerProcess) -> None:
    for role in (Role.DECIDER, Role.GATEWAY, Role.OPERATOR):
        user = as_user(
            world, own, role, *clock(*acl_rules(NAME, role)), "+xgroup|create", "+echo", "+zrange", "+xlen"
        )
        assert user.do(namespace.check_commands(Keyspace(NAME, 1), decider=True)) == ""
        tour(user)
        world.client.flushdb()


@pytest.mark.parametrize("role", Role)
def test_every_role_may_find_out_why_a_run_is_stuck(world: World, own: ServerProcess, role: Role) -> None:
    place, _ids = world.asked(approval(expires_in=None))
    user = as_user(world, own, role, *clock(*acl_rules(NAME, role)))
    with Broker(user.url, namespace=NAME, create=False) as broker:
        assert broker.runs.why(place.run).stuck
        assert [one.run_id for one in broker.check().findings] == [place.run]


def worker_of(world: World, own: ServerProcess) -> World:
    return as_user(world, own, "worker", *clock(*acl_rules(NAME, Role.WORKER)))


def test_a_worker_pauses_reads_its_verdicts_and_goes_on(world: World, own: ServerProcess) -> None:
    """All a worker does needs no verdict key but to read it."""
    worker = worker_of(world, own)
    assert worker.do(namespace.check_commands(Keyspace(NAME, 1), decider=False)) == ""
    place, lease = worker.started()
    worker.fail(lease)
    worker.release(worker.leased(place, "n2"))
    worker.ask(lease := worker.leased(place, "n3"), approval("c1"), completion("c2"), mode=Mode.EACH)
    assert lease.token.fence == 3
    (one, two) = (a.interrupt for a in worker.run_address(place).interrupts)
    world.answer(one)
    lease = worker.leased(place, "n4")
    found = worker.record(one)
    assert found.resolution is not None
    assert found.resolution.answer == Approve()
    worker.ask(lease, approval("c3"), mode=Mode.EACH, keep=[two])
    world.forward(hours=25)
    worker._ahead = world._ahead
    assert worker.expire(two, decider=False) == [True]
    worker.finish(worker.leased(place, "n5"))
    assert world.state(place) == "waiting"
    worker.withdraw(place, 2)
    assert world.state(place) == "withdrawn"


@pytest.mark.report("RB27")
def test_no_script_lets_a_worker_decide(world: World, own: ServerProcess) -> None:
    """P13: every script call that a decider would make is refused as a whole, whichever script it is sent with."""
    worker = worker_of(world, own)
    place, (one, late) = world.asked(
        approval("c1"), approval("c2", on_expiry=OnExpiry.DEFAULT, default_answer=Approve(), expires_in=None)
    )
    tape = Tape(world)
    tape.answer(one)
    tape.answer_call("c2", run=place.run, seq=1)
    tape.answer_call("c9", Complete(value=1))
    tape.expire(late)
    deciding = tape.calls
    before = world.snapshot()
    for command in deciding:
        for name in scripts.names():
            sent = Command(name, command.partition, command.items, command.decode)
            with pytest.raises(redis.ResponseError, match=DENIED):
                run_command(worker.client, sent, world.settings, world.rendering)
    assert changed(before, world.snapshot()) == []
    with pytest.raises(redis.ResponseError, match=DENIED):
        worker.do(namespace.check_commands(Keyspace(NAME, 1), decider=True))


REFUSED = (
    "RENAME VERDICT VERDICT|COPY VERDICT VERDICT|RESTORE VERDICT 0 x|FLUSHALL|FLUSHDB|SWAPDB 0 1|FUNCTION LIST|"
    "SCRIPT FLUSH|ACL LIST|CONFIG SET maxmemory 1|DEBUG RELOAD|KEYS *|SCAN 0"
)


def writes(world: World, command: str, key: str) -> list[str] | None:
    """The command with `key` where its key belongs, None where it writes none."""
    if command == "xreadgroup":
        return None  # it writes to the group of a stream, and can make none of a key that is none
    name, _, sub = command.partition("|")
    (info,) = world.client.execute_command("COMMAND", "INFO", command).values()
    if "write" not in {str(flag) for flag in info["flags"]}:
        return None
    words = [name, *([sub] if sub else []), *["1"] * (abs(info["arity"]) - 1 - bool(sub))]
    words[info["first_key_pos"]] = key
    return words


def test_no_command_of_a_worker_writes_a_verdict(world: World, own: ServerProcess) -> None:
    """P13: each command it may run, with a verdict key in the place of its key, is refused or only reads."""
    worker = worker_of(world, own)
    _place, (one,) = world.asked()
    verdict = world.key("verdict", one)
    tried = [words for command in COMMANDS if (words := writes(world, command, verdict))]
    assert len(tried) > 15
    for words in tried:
        told = world.client.execute_command("ACL", "DRYRUN", "worker", *words)
        assert b"no permissions to access" in told, words
    for text in (
        "redis.call('SET', KEYS[1], 'x')",
        f"redis.call('SET', '{verdict}', 'x')",
        "redis.call('DEL', KEYS[1])",
    ):
        for keys in ([], [verdict]):
            with pytest.raises(redis.ResponseError):
                worker.client.eval(f"return {text}", len(keys), *keys)
    for line in REFUSED.replace("VERDICT", verdict).split("|"):
        refused = line.split()
        with pytest.raises(redis.ResponseError):
            worker.client.execute_command(*refused)
    assert world.client.exists(verdict) == 0


def test_a_mark_without_its_verdict_is_not_believed(world: World, own: ServerProcess) -> None:
    """P13: a worker may write interrupts. It marks one as approved, with no verdict, then with somebody else's."""
    worker = worker_of(world, own)
    _a, (mine,) = world.asked(approval("c1", 400), name="a")
    _b, (other,) = world.asked(approval("c2", 40), name="b")
    world.answer(other, by=ANN)
    forged = {
        "state": "resolved",
        "answer": "approve",
        "op": "x",
        "at": "1",
        "approved": world.field("interrupt", mine, "action"),
    }
    stolen = {"verdict": other, "mark": world.field("interrupt", other, "mark")}
    for fields in (forged, {**forged, **stolen}):
        poke(worker.client, world.key("interrupt", mine), **fields)
        found = world.record(mine)
        assert found.resolution is None
        assert found.problem is not None
        assert ":verdict:" in found.problem


@pytest.mark.report("RA43", "RB27")
def test_an_approval_does_not_follow_a_question_that_is_changed_after_it(
    world: World, own: ServerProcess
) -> None:
    """P13, rule 31: a worker may write questions. It asks for 40, is approved, and makes it 400."""
    worker = worker_of(world, own)
    _place, (one,) = world.asked(approval(amount=40))
    world.answer(one)
    assert world.record(one).problem is None
    worker.client.set(world.key("question", one), approval(amount=400).to_bytes())
    assert "another action" in (world.record(one).problem or "")


def test_an_early_verdict_counts_for_its_own_call_only(world: World, own: ServerProcess) -> None:
    """P13: the same, with a verdict that came early, for another run's call of the same id."""
    worker = worker_of(world, own)
    a, lease = world.started("a")
    world.answer_call("c1", run=a.run, seq=1)
    world.ask(lease, approval("c1", 40))
    first = world.run_address(a).interrupts[0].interrupt
    assert world.record(first).problem is None
    _b, (mine,) = world.asked(approval("c1", 400), name="b")
    taken = {
        name: world.field("interrupt", first, name)
        for name in ("state", "answer", "op", "at", "mark", "verdict")
    }
    poke(worker.client, world.key("interrupt", mine), **taken)
    assert "another question" in (world.record(mine).problem or "")


def test_a_role_reaches_no_other_namespace(world: World, own: ServerProcess) -> None:
    """P13: names that begin alike, too."""
    assert world.client.ping()
    for role in Role:
        user = as_user(world, own, role, *clock(*acl_rules(NAME, role)))
        for name in ("airlines", "airline2", "air"):
            p = Keyspace(name, 1).partition(0)
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.client.get(p.key("run", "x"))
            with pytest.raises(redis.ResponseError):
                run_command(user.client, sweep.register(p, "w", b"x"), user.settings, user.rendering)
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.client.publish(p.key("settled", "x"), "resolved")


def test_rules_follow_the_table_of_key_names() -> None:
    """Every segment has a pattern, channels have one of their own kind; a worker's verdicts are read-only.

    A worker or a decider has no pattern at all for keys, secrets and what is told to others: whoever reads one is
    somebody else. A worker follows nothing.
    """
    for role in Role:
        rules = acl_rules("a", role)
        for kind in SEGMENTS.keys() - {"clock", "meta"}:
            patterns = [
                rule for rule in rules if rule.endswith((f"}}{SEGMENTS[kind]}", f"}}{SEGMENTS[kind]}*"))
            ]
            access = "%R~" if (role, kind) == (Role.WORKER, "verdict") else "~"
            access = "&" if kind in ("settled", "stir", "wake") else access
            private = role in (Role.WORKER, Role.DECIDER) and SEGMENTS[kind].startswith(":vault-")
            private |= role is Role.WORKER and kind in ("cursors", "notes", "holders")
            assert [pattern.partition("{")[0] for pattern in patterns] == ([] if private else [access])


@pytest.mark.parametrize("name", ["", "a:b", "a*", "A", "a b", "{a}"])
def test_no_rules_for_a_namespace_that_cannot_be(name: str) -> None:
    with pytest.raises(InvalidInput):
        acl_rules(name, Role.WORKER)
