"""Requests of sweepers and readers: expiry, lost leases, rings, acknowledgements, retention."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from broker.store.commands import address, sweep, wakes
from broker.store.commands.values import Command, micros, text
from tests.scripts.world import POOL

from .client import Client
from .request import Reply, Request
from .running import AboutRun, ended
from .state import Model, Told


@dataclass(frozen=True, repr=False)
class Expire(Request):
    interrupt: str

    def command(self, client: Client) -> Command[Any]:
        return sweep.expire(client.p, [client.at(self.interrupt)], decider=True)

    def expected(self, m: Model) -> Told:
        i = m.records.interrupts.get(self.interrupt)
        if i is None:
            return (m.says("expire", "interrupt", "resolved", "past its deadline").told,)
        if not m.due(i):
            guard = "not due" if i.state == "open" else "past its deadline"
            if i.policy == "wait" and i.deadline is not None and i.deadline <= m.now and i.state == "open":
                guard = "due, policy wait"
            return (m.says("expire", "interrupt", i.state, guard).told,)
        m.expire(i)
        return (m.table.row("expire", "interrupt", "open", f"due, policy {_words(i.policy)}").told,)

    def told(self, reply: Reply) -> Told:
        return ("ended" if reply.result else "nothing",)


def _words(policy: str) -> str:
    return "default answer" if policy == "default" else policy


@dataclass(frozen=True, repr=False)
class Reclaim(AboutRun):
    pause: timedelta

    def command(self, client: Client) -> Command[Any]:
        row = (self.place.run, self.place.session, self.place.pool)
        return sweep.reclaim(client.p, [row], [self.pause])

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        if run.state == "leased":
            if run.until > m.now:
                return (m.moves(run, "reclaim", "not run out"),)
            pause = "run out, after a pause" if self.pause else "run out, no pause"
            guard = "run out, the last attempt" if run.tries >= m.tries else pause
            return (ended(m, run, "reclaim", guard, self.pause),)
        if not run.ready_at:
            return (m.table.row("reclaim", "run", run.state, "not run out").told,)
        guard = "its back-off is not over" if run.ready_at > m.now else "its back-off is over"
        told = m.moves(run, "reclaim", guard)
        if told == "offered":
            run.ready_at = 0
        return (told,)

    def told(self, reply: Reply) -> Told:
        return (reply.result,)


class Readers:
    """How far the readers of the interrupts doorbell have come, as it was seen: facts, not the model's opinion."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, str]] = {}
        self.bell: dict[str, str] = {}
        self.delivered = dict.fromkeys(("approvals", "completions"), "0-0")
        self.held: dict[str, list[str]] = {"approvals": [], "completions": []}
        self.known: dict[str, dict[str, str]] = {}

    def rung(self, entries: dict[str, dict[str, str]]) -> None:
        """Entries that were written."""
        self.entries |= entries
        self.known |= entries
        self.bell |= {fields["interrupt"]: at for at, fields in entries.items()}

    def given(self, group: str, entry: str) -> None:
        """An entry that a reader of the group was handed."""
        self.delivered[group] = entry
        self.held[group].append(entry)

    def gone(self, group: str, entry: str) -> None:
        """An entry that its reader has acknowledged, or lost."""
        if entry in self.held[group]:
            self.held[group].remove(entry)

    def where(self, interrupt: str, group: str) -> str:
        """Where the last bell of an interrupt is, in the words of the protocol's table."""
        bell = self.bell[interrupt]
        if bell not in self.entries:
            return "its bell was trimmed"
        if sweep.stream_id(bell) > sweep.stream_id(self.delivered[group]):
            return "its bell is on its way"
        return (
            "its bell is in a reader's hands"
            if bell in self.held[group]
            else "its bell was handed out and lost"
        )


@dataclass(frozen=True, repr=False)
class Ring(Request):
    """A sweeper rings again for one interrupt of an audience."""

    interrupt: str
    audience: str
    readers: Readers = field(repr=False, compare=False)

    def command(self, client: Client) -> Command[Any]:
        (a,) = client.read(address.read_addresses(client.p, [self.interrupt]))
        return sweep.ring(client.p, [a], self.audience, client.settings.sweep_every)

    def expected(self, m: Model) -> Told:
        r = m.records
        i = r.interrupts.get(self.interrupt)
        if i is None or i.state != "open":
            return (m.says("ring again", "interrupt", "resolved", "whatever").told,)
        rung = r.unseen.get(self.interrupt)
        if rung is None:
            return (m.says("ring again", "interrupt", "open", "seen").told,)
        if rung > m.now - micros(m.settings.sweep_every):
            return (m.says("ring again", "interrupt", "open", "rung within the period").told,)
        r.unseen[i.id] = m.now
        return (m.says("ring again", "interrupt", "open", self.readers.where(i.id, self.audience)).told,)

    def told(self, reply: Reply) -> Told:
        return (reply.result,)


@dataclass(frozen=True, repr=False)
class RingReady(Request):
    """A sweeper wakes workers for what nobody took."""

    def command(self, client: Client) -> Command[Any]:
        return wakes.ring_ready(client.p, [POOL], 2)

    def expected(self, m: Model) -> Told:
        waiting = [run for run in m.records.runs.values() if run.offered]
        if waiting:
            m.says("ring again", "run", "ready", "nobody took it")
        return ("rung", min(len(waiting), 2))

    def told(self, reply: Reply) -> Told:
        return (text(reply.rows[0][0]), reply.result)


@dataclass(frozen=True, repr=False)
class Seen(Request):
    """A reader acknowledges an entry after its handler returned."""

    entry: str
    group: str
    audience: str
    interrupt: str
    readers: Readers = field(repr=False, compare=False)

    @classmethod
    def of(cls, readers: Readers, group: str, entry: str) -> "Seen":
        """The acknowledgement of an entry that a reader was handed."""
        fields = readers.known[entry]
        return cls(entry, group, fields["for"], fields["interrupt"], readers)

    def command(self, client: Client) -> Command[Any]:
        found = client.read(address.read_addresses(client.p, [self.interrupt]))
        at = found[0] if found else address.Address.gone(self.interrupt)
        return sweep.seen(client.p, self.group, [sweep.Entry(client.p, self.entry, self.audience, at)])

    def expected(self, m: Model) -> Told:
        if self.group == self.audience:
            m.records.unseen.pop(self.interrupt, None)
        self.readers.gone(self.group, self.entry)
        return ("ok",)

    def told(self, reply: Reply) -> Told:
        return (reply.result,)


@dataclass(frozen=True, repr=False)
class Collect(Request):
    """A sweeper deletes what has been settled for long enough. It reads what that is just before, each time."""

    KEEPS = False

    def command(self, client: Client) -> Command[Any]:
        return sweep.collect(client.p, client.stale())

    def expected(self, m: Model) -> Told:
        r = m.records
        due = sorted((at, member) for member, at in r.retention.items() if at <= m.now)
        kept = [member for _, member in due if _is_needed(m, member)]
        for member in kept:
            r.retention[member] = m.now + m.keep_parked
        due = [(at, member) for at, member in due if member not in kept]
        for _, member in due:
            del r.retention[member]
            {"r": _drop_run, "i": _drop_interrupt, "e": _drop_early}[member[0]](m, member[2:])
        return ("collected", len(due))

    def told(self, reply: Reply) -> Told:
        return ("collected", sum(text(row[0]) == "collected" for row in reply.rows))


def _is_needed(m: Model, member: str) -> bool:
    """Whether an early answer is the end of a call that its run, which goes on, has yet to read."""
    slot, _, rest = member[2:].partition(" ")
    _, _, name = rest.partition("\x1f")
    if member[0] != "e" or name[:2] != "r ":
        return False
    _, run_id, _, call = name.split(" ", 3)
    run = m.records.runs.get(run_id)
    return run is not None and run.state not in ("finished", "withdrawn") and run.completed.get(call) == slot


def _forget(m: Model, session: str, call: str, word: str, instead: str = "") -> None:
    left = [one for one in m.records.aliases.get((session, call), []) if one not in (word, instead)]
    m.records.aliases[session, call] = left + ([instead] if instead else [])


def _drop(m: Model, interrupt: str) -> None:
    i = m.records.interrupts.pop(interrupt)
    m.records.verdicts -= {i.id, i.slot}
    m.records.unseen.pop(interrupt, None)


def _drop_run(m: Model, name: str) -> None:
    run = m.records.runs.pop(name)
    for one in run.ids:
        call = m.records.interrupts[one].call
        _drop(m, one)
        if call:
            _forget(m, run.session, call, one)
    for call in run.calls:
        _forget(m, run.session, call, f"~{run.id}")


def _drop_interrupt(m: Model, name: str) -> None:
    i = m.records.interrupts[name]
    _drop(m, name)
    if i.call:
        _forget(m, m.records.runs[i.run].session, i.call, name, f"~{i.run}")


def _drop_early(m: Model, name: str) -> None:
    slot, _, rest = name.partition(" ")
    session, _, early = rest.partition("\x1f")
    m.records.verdicts.discard(slot)
    if m.records.early.pop((session, early), None):
        m.records.bells.add("dispositions")
