"""Which keys the scripts touch, and what they do where another program wrote."""

import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
import redis

from broker.core.answers import Approve, Complete, Reject
from broker.core.models import OnExpiry, OnMissed
from broker.core.settings import Settings
from broker.core.states import Mode
from broker.errors import Corrupt
from broker.store import namespace, scripts
from broker.store.commands import answers, sweep, wakes
from broker.store.commands.values import StaleAddress
from broker.store.keys import SEGMENTS, Keyspace
from broker.store.scripts import Rendering
from tests.records import changed as changed_record
from tests.records import poke

from .guarded import shows_guard
from .journaling import begin, by_token, cut, end, handle
from .rows.sweeps import unread
from .snapshot import changed
from .world import POOL, World, approval, completion


def tour(w: World) -> None:
    """Every script at least once, in every mode, early and late."""
    w.do(namespace.create(w.namespace, namespace.Wanted()))
    space = Keyspace(w.namespace, 1)
    for decider in (False, True):
        w.do(namespace.check_commands(space, decider=decider))
    w.do(sweep.sweep_right(w.p, "d s", w.settings.sweep_every))
    w.do(sweep.sweep_right(w.p, "d s", w.settings.sweep_every * 0))
    w.do(sweep.register(w.p, "w", b"record"))
    w.do(sweep.register(w.p, "w", b""))
    w.adopt(w.place("adopted"))
    w.start(w.place("handed"))
    w.hand(w.place("handed"))
    one = unread(w)
    w.client.execute_command("XTRIM", w.key("interrupts"), "MAXLEN", 0)
    w.ring(one)
    w.do(sweep.seen(w.p, "approvals", [sweep.Entry(w.p, "1-1", "approvals", w.at(one))]))
    w.do(wakes.ring_ready(w.p, [POOL], 4))
    w.answer(one)
    w.move(w.place(), "night")
    for mode in Mode:
        lives(w, mode)
    journaled(w)
    w.answer_unknown("int_0000" + "f" * 32)
    w.answer_call("c404", Approve())
    w.forward(days=9)
    w.collect()


def lives(w: World, mode: Mode) -> None:
    """A run that fails, dies, is sent back, pauses, is answered, asks again, expires, and is withdrawn or finished."""
    place = w.place(mode)
    w.start(place)
    lease = w.leased(place)
    w.renew(lease)
    w.release(lease)
    w.fail(w.leased(place, "n2"))
    w.fail(lease := w.leased(place, "n3"), final=True)
    w.requeue(place, lease.token.fence)
    w.answer_call("c2", Complete(value=1), run=place.run, seq=1)
    default = approval("c3", on_expiry=OnExpiry.DEFAULT, default_answer=Reject(reason="late"))
    beating = completion("c5", heartbeat=timedelta(minutes=1), on_missed=OnMissed.RING)
    w.ask(w.leased(place, "n4"), approval("c1"), completion("c2"), default, beating, mode=mode)
    ids = [a.interrupt for a in w.run_address(place).interrupts]
    w.heartbeat(ids[-1])
    w.forward(minutes=2)
    w.expire(ids[-1])
    w.answer(ids[0])
    w.forward(hours=25)
    w.expire(*ids)
    lease = w.leased(place, "n5")
    w.forward(seconds=16)
    w.reclaim(place)
    w.ask(w.leased(place, "n6"), approval("c1", 400), mode=mode)
    w.suspend(w.pause(place, approval("c4"), seq=3, mode=mode, replace=True))
    if mode is Mode.ALL:
        w.withdraw(place, 3)
    else:
        w.answer_call("c4", run=place.run, seq=3)
        w.finish(w.leased(place, "n7"))


def journaled(w: World) -> None:
    """A run with a journal: a step, a job completed before its question, a gated call, a checkpoint."""
    place, lease = w.started("journaled")
    begin(w, lease, "c0")
    end(w, lease, "c0")
    begin(w, lease, long=True)
    handle(w, lease)
    w.put(place, "and quickly", op="m-1")
    by_token(w, place)
    w.ask(lease, approval("c2"), completion())
    w.answer(w.run_address(place).interrupts[0].interrupt)
    lease = w.leased(place, "n2")
    gated = begin(w, lease, "c2", gated=True)
    begin(w, lease, "c2", gated=True, interrupt=gated.detail.decode())
    cut(w, lease)
    w.finish(lease)


class Monitor:
    """What a server says it runs, while the context lasts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._monitor = self._world.client.monitor().__enter__()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def _read(self) -> None:
        for said in self._monitor.listen():
            self.lines.append(f"[{said['client_type']}] {said['command']}")
            if said["command"].startswith("ECHO monitor-ends"):
                return

    def __exit__(self, *_: object) -> None:
        self._world.client.echo("monitor-ends")
        self._thread.join(10)
        self._monitor.__exit__(None, None, None)


def calls(lines: list[str]) -> Iterator[tuple[str, set[str], list[list[str]]]]:
    """Each script call: its hash, its declared keys, and the commands it ran."""
    sha, declared, inside = "", set[str](), list[list[str]]()
    for line in lines:
        kind, _, command = line.partition(" ")
        words = command.split(" ")
        if kind == "[lua]":
            inside.append(words)
        elif words[0].upper() in ("EVALSHA", "EVAL"):
            if sha:
                yield sha, declared, inside
            count = re.search(r" (\d+) \{", command)
            assert count is not None
            rest = command[count.end() - 1 :].split(" ")
            sha, declared, inside = words[1], set(rest[: int(count[1])]), []
    yield sha, declared, inside


KEYLESS = {"TIME", "PUBLISH"}


def test_every_key_a_script_touches_was_declared(world: World, rendering: Rendering) -> None:
    """Decisions: only declared KEYS are touched; seen from the server's side, for every script."""
    tour(world)  # so that every script is known to the server and called by its hash
    world.client.flushdb()
    world._ahead = 0
    with Monitor(world) as monitor:
        tour(world)
    names = {rendering.script(name, oom=oom).sha: name for name in scripts.names() for oom in (False, True)}
    seen, strays = set(), []
    for sha, declared, commands in calls(monitor.lines):
        seen.add(names.get(sha, sha))
        for words in commands:
            key = words[2] if words[0] == "XINFO" else words[1] if len(words) > 1 else ""
            if words[0] not in KEYLESS and key not in declared and not key.endswith(":clock"):
                strays.append((names.get(sha), words[0], key))
    assert strays == []
    assert set(scripts.names()) - seen == set()


def test_the_check_at_connect_tries_every_command_of_the_scripts(world: World) -> None:
    """Decisions: a command that is refused in mid-script leaves earlier writes, so each is tried before."""
    used = set()
    for path in Path(scripts.__file__).parent.glob("lua/*.lua"):
        if path.stem != "check":
            source = path.read_text()
            used |= set(re.findall(r"(?:write|read|long|redis_p?call)\('([A-Z]+)'", source))
            used |= set(re.findall(r"\{ '([A-Z]{3,})', (?:name|key)", source))
    tried = set(re.findall(r"\{ '?([A-Z]{3,})'?,", scripts._source("check")))
    assert used - tried == {"TIME"}
    assert world.do(namespace.check_commands(Keyspace(world.namespace, 1), decider=True)) == ""
    assert world.snapshot() == {}


def every_step(w: World) -> dict[str, Callable[[], object]]:
    """Each operation, with a run of its own where it needs one; a whole partition's worth of keys is there."""
    place, (one, two, three) = w.asked(
        approval("c1"), completion("c2"), completion("c3", heartbeat=timedelta(days=1))
    )
    lost, _lease = w.started("lost")
    w.start(w.place("ready"))
    w.fail(w.started("dead")[1], final=True)
    w.answer_call("c8")
    w.forward(hours=25)
    held = {name: w.started(name)[1] for name in ("finish", "fail", "release", "suspend")}
    w.fail(held["fail"])
    held["fail"] = w.leased(w.place("fail"), "n2")
    return {
        "answer": lambda: w.do(answers.answer(w.p, [w.say(one)])),
        "expire": lambda: w.expire(two),
        "heartbeat": lambda: w.heartbeat(three),
        "withdraw": lambda: w.withdraw(place),
        "finish": lambda: w.finish(held["finish"]),
        "fail": lambda: w.fail(held["fail"]),
        "hand": lambda: w.hand(w.place("ready")),
        "release": lambda: w.release(held["release"]),
        "suspend": lambda: w.ask(held["suspend"], approval("c3")),
        "lease": lambda: w.lease(w.place("ready"), "n2"),
        "start": lambda: w.start(w.place("new")),
        "reclaim": lambda: w.reclaim(lost),
        "parked": lambda: w.answer_call("c9"),
        "ring": lambda: w.ring(one),
        "ring_ready": lambda: w.do(wakes.ring_ready(w.p, [POOL], 4)),
        "collect": lambda: w.all(sweep.collect(w.p, w.stale())),
    }


def faults(act: Callable[[], object]) -> list[Corrupt]:
    """The records that a step could not use."""
    try:
        result = act()
    except Corrupt as error:
        return [error]
    except StaleAddress:
        return []
    except redis.ResponseError as error:
        # Where its address cannot be read either, the read before it fails. A script never does.
        if "WRONGTYPE" not in str(error) or "script" in str(error):
            raise
        return []
    return [one for one in (result if isinstance(result, list) else [result]) if isinstance(one, Corrupt)]


def with_another_type(world: World, kind: str) -> None:
    """Every key of a kind holds another type: a step that needs one names it and writes nothing."""
    world.waiters.wait()
    steps = every_step(world)
    prefix = world.key(kind)
    names = [name for name in world.snapshot() if name.startswith(prefix)]
    assert names
    for name in names:
        world.client.delete(name)
        world.client.execute_command(
            *(("SET", name, "x") if kind in ("pools", "lists", "idle") else ("SADD", name, "x"))
        )
    met = []
    for act in steps.values():
        before = world.snapshot()
        found = faults(act)
        met += found
        if found:  # what is due comes up again later, and is no longer at the head of its list
            moved = (":timers", ":retention", ":unseen:approvals")
            assert [k for k in changed(before, world.snapshot()) if not k.endswith(moved)] == []
    assert met
    assert {error.key for error in met} <= set(names)


@pytest.mark.parametrize(
    "kind",
    ["run", "interrupt", "calls", "active", "history", "early", "aliases", "ready", "idle", "timers", "retention",
     "pools", "counter", "open", "lists", "unseen", "dispositions", "interrupts",
     "errors"],
)  # fmt: skip
def test_a_key_of_another_type_is_named_and_nothing_is_written(world: World, kind: str) -> None:
    """P2, P7, P11: found out before the first write, whichever key it is."""
    with_another_type(world, kind)


@shows_guard("types")
def test_types_are_looked_at_before_the_first_write(world: World) -> None:
    with_another_type(world, "open")


def test_P2_the_last_question_of_a_list_ends_whatever_the_names_of_lists_are(world: World) -> None:
    """Its name is taken out at the end of a script call, when nothing may be refused. Off: `need` in `list`."""
    _place, (one,) = world.asked()
    said = world.say(one)
    world.client.delete(world.key("lists"))
    world.client.set(world.key("lists"), "x")
    before = world.snapshot()
    (fault,) = faults(lambda: world.all(answers.answer(world.p, [said])))
    assert fault.key == world.key("lists")
    assert changed(before, world.snapshot()) == []


def test_a_verdict_key_of_another_type_is_named(world: World) -> None:
    _place, (one,) = world.asked()
    world.client.sadd(world.key("verdict", one), "x")
    with pytest.raises(Corrupt) as fault:
        world.answer(one)
    assert fault.value.key == world.key("verdict", one)
    assert world.settled(one) == "open"


@shows_guard("known-state")
def test_a_state_of_another_version_is_never_guessed(world: World) -> None:
    """P10: an interrupt that a later release calls `escalated` is neither answered nor expired nor withdrawn."""
    place, (one,) = world.asked()
    poke(world.client, world.key("interrupt", one), state="escalated")
    world.forward(hours=25)
    for act in (lambda: world.answer(one), lambda: world.withdraw(place), lambda: world.expire(one)):
        before = world.snapshot("timers")
        (fault,) = faults(act)
        assert fault.key == world.key("interrupt", one)
        assert changed(before, world.snapshot("timers")) == []


@shows_guard("numbers")
def test_letters_where_a_number_counts_are_named(world: World) -> None:
    """P7: a foreign value in a field is the record's fault, not the script's."""
    _place, (one,) = world.asked()
    poke(world.client, world.key("interrupt", one), deadline="soon")
    (fault,) = faults(lambda: world.answer(one))
    assert fault.key == world.key("interrupt", one)


@shows_guard("whole-record")
def test_P2_a_record_that_lacks_what_others_rest_on_is_named(world: World) -> None:
    """It was found out in the middle of the writes: without its run, a line of history was left and no answer."""
    place, (one,) = world.asked()
    key, said = world.key("interrupt", one), world.say(one)
    whole = world.client.get(key)
    for field in ("run", "session", "queue", "kind", "audience"):
        world.client.set(key, changed_record(whole, **{field: None}))
        before = world.snapshot()
        (fault,) = faults(lambda: world.all(answers.answer(world.p, [said])))
        assert fault.key == key
        assert changed(before, world.snapshot()) == []
    world.client.set(key, whole)
    for field in ("session", "queue", "agent", "seq", "fence", "tries", "left"):
        poke(world.client, world.key("run", place.run), **{field: None})
        (fault,) = faults(lambda: world.all(answers.answer(world.p, [said])))
        assert fault.key == world.key("run", place.run)


@shows_guard("texts")
def test_a_record_of_other_than_texts_is_named(world: World) -> None:
    """P7: a number or a map where a text belongs, or bytes behind the record, is the record's fault."""
    _place, (one,) = world.asked()
    key = world.key("interrupt", one)
    good, said = world.client.get(key), world.say(one)
    for odd in (5, {"a": "b"}, True, ["x"]):
        world.client.set(key, changed_record(good, state=odd))
        (fault,) = faults(lambda: world.answer(one))
        assert (type(fault), fault.key) == (Corrupt, key)
    world.client.set(key, changed_record(good, offers={"a": "b"}))
    (fault,) = faults(lambda: world.do(answers.answer(world.p, [said])))
    assert (type(fault), fault.key) == (Corrupt, key)
    world.client.set(key, good + b"\x01")
    (fault,) = faults(lambda: world.answer(one))
    assert fault.key == key


def test_a_due_record_that_cannot_be_read_does_not_hold_up_the_others(world: World) -> None:
    """P11: forty of them at the head of the list of what is due; a sweep's worth later the good one has its turn."""
    poison = [f"int_0000{n:032x}" for n in range(40)]
    for one in poison:
        poke(world.client, world.key("interrupt", one), state="?", run="x")
        world.client.zadd(world.key("timers"), {f"i {one}": 1})
    _place, (good,) = world.asked()
    world.forward(hours=25)
    for _ in range(2):
        due = world.read(sweep.read_due(world.p, world.now(), Settings().sweep_every, 32, ())).interrupts
        world.expire(*due)
    assert world.settled(good) == "expired"
    assert world.client.zcard(world.key("timers")) == 40


def test_the_clock_of_tests_is_not_in_the_scripts_that_are_used() -> None:
    """Decisions: one now(); only the test rendering adds an offset to it."""
    for name in scripts.names():
        assert SEGMENTS["clock"] not in Rendering().script(name).text
        assert SEGMENTS["clock"] in Rendering(clock=True).script(name).text
