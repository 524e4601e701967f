"""Requests that decide: answers to an interrupt named by its id, or by its call."""

from dataclasses import dataclass, field
from typing import Any

from broker.core.answers import (
    Answer as Said,
)
from broker.core.answers import (
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Principal,
    Reject,
    Respond,
)
from broker.core.models import Interrupt
from broker.store import prepare
from broker.store.commands import address, answers
from broker.store.commands.values import Command
from broker.store.keys import Pool
from tests.scripts.world import POOL, WINDOW

from .client import Client
from .request import Request
from .running import in_time
from .state import CLOSED, DECIDED, Model, ModelEarly, ModelInterrupt, Told

ANSWERS: dict[str, Said] = {
    "approve": Approve(),
    "reject": Reject(reason="no"),
    "edit": Edit(arguments={"amount": 1}),
    "respond": Respond(payload="yes"),
    "complete": Complete(value=1),
    "fail": Fail(error="broke"),
    "cancel": Cancel(reason="moot"),
}
PARTIES = {name: Principal(id=name) for name in ("ann", "bob")}


@dataclass(frozen=True, repr=False)
class Answering(Request):
    """What every answer carries. `questions` are the interrupts as they were written, by id."""

    op: str
    kind: str
    by: str
    seen: str
    questions: dict[str, Interrupt] = field(repr=False, compare=False)

    def said(self, interrupt: str, identity: str) -> answers.Said:
        """The answer as the script wants it."""
        question = self.questions.get(interrupt)
        return prepare.verdict_of(question, identity, ANSWERS[self.kind], PARTIES[self.by], op=self.op,
                                  seen=self.seen or None)  # fmt: skip

    def decide(self, m: Model, i: ModelInterrupt, accepted: str = "", *, receipt: bool = False) -> Told:
        """What becomes of it at an interrupt that exists."""
        if i.op == self.op and i.state in DECIDED:
            return self.again(m, i)
        if m.due(i):
            m.expire(i, "due, met by an answer")
            return (m.table.row("expire", "interrupt", "open", "due, met by an answer").told,)
        if i.state != "open":
            return self._late(m, i)
        guard = accepted or self._guard(m, i)
        if receipt:
            return (m.table.row("answer", "interrupt", "none", "no such interrupt").told,)
        if self.kind not in i.offers:
            guard = "a kind that is not offered"
        elif self.seen not in ("", i.digest):
            guard = "another digest was seen"
        else:
            i.slot = i.id
            m.records.verdicts.add(i.id)
            m.settle(i, "answer", "a cancel" if self.kind == "cancel" else guard, self.op, self.kind)
            return (m.table.row("answer", "interrupt", "open", guard).told,)
        return (m.table.row("answer", "interrupt", i.state, guard).told,)

    def _guard(self, m: Model, i: ModelInterrupt) -> str:
        if self.kind == "cancel":
            return "a cancel"
        others = [one for one in m.open_of(m.records.runs[i.run]) if one is not i]
        return "another one is open" if others else "the last one of its pause"

    def again(self, m: Model, i: ModelInterrupt) -> Told:
        """A repeat of the answer that decided."""
        offered = m.records.runs[i.run].offered
        guard = "by this op, the run still ready" if offered else "by this op, the run leased"
        return (m.says("answer", "interrupt", i.state, guard).told,)

    def _late(self, m: Model, i: ModelInterrupt) -> Told:
        """One that comes after the decision. What the policy answered was nobody's answer."""
        if i.state not in DECIDED or i.op.startswith("expire "):
            found = "expired" if i.state in DECIDED else i.state
            return (m.table.row("answer", "interrupt", found, "whatever the op").told,)
        return (m.table.row("answer", "interrupt", i.state, "by another op").told, i.op)


@dataclass(frozen=True, repr=False)
class Answer(Answering):
    """An answer to one interrupt."""

    interrupt: str

    def command(self, client: Client) -> Command[Any]:
        said = self.said(self.interrupt, self.interrupt)
        found = client.read(address.read_addresses(client.p, [self.interrupt]))
        if not found:
            return answers.answer_unknown(client.p, self.interrupt, said, WINDOW)
        at = client.at(self.interrupt) if found[0].mode == "first" else found[0]
        return answers.answer(client.p, [(at, said)])

    def expected(self, m: Model) -> Told:
        r, key = m.records, (self.interrupt, self.op)
        i = r.interrupts.get(self.interrupt)
        if i is not None:
            return self.decide(m, i, receipt=r.receipts.get(key, 0) > m.now)
        r.receipts[key] = m.now + m.keep_settled
        return (m.says("answer", "interrupt", "none", "no such interrupt").told,)


@dataclass(frozen=True, repr=False)
class AnswerCall(Answering):
    """An answer to a call of a session, with run and sequence or without."""

    session: str
    call: str
    run: str
    seq: int
    not_after: int

    @property
    def name(self) -> str:
        """The field it is kept under while its question has not come."""
        return f"r {self.run} {self.seq} {self.call}" if self.run else f"c {self.call}"

    @property
    def slot(self) -> str:
        """Where its verdict lies while its question has not come."""
        return address.early_slot(self.session, self.run, self.seq, self.call)

    def command(self, client: Client) -> Command[Any]:
        ids = client.read(address.read_aliases(client.p, self.session, self.call))
        said = self.said(ids[-1] if ids else "", f"{self.session}/{self.call}")
        pool: Pool | None = POOL if self.run and client.field("run", self.run, "state") else None
        known = tuple(client.at(one) for one in ids)
        at = answers.CallAddress(self.session, self.call, self.slot, self.run, self.seq, pool, known)
        longest = client.settings.keep_settled
        return answers.answer_call(client.p, at, said, not_after=self.not_after, longest=longest)

    def expected(self, m: Model) -> Told:
        r = m.records
        known = r.aliases.get((self.session, self.call), [])
        found = [r.interrupts[one] for one in known if one in r.interrupts]
        own = [i for i in found if i.op == self.op and i.state in DECIDED and self.run in ("", i.run)]
        if own:
            if not self.run and len(known) > 1:
                m.table.row("answer", "interrupt", own[0].state, "by call alone, seen twice, one by this op")
            return self.again(m, own[0])
        if self.run:
            return self._in_sequence(m, found)
        if len(known) > 1:
            return (
                m.table.row("answer", "interrupt", "open", "by call alone, seen twice, none by this op").told,
            )
        if known and not found:
            return self._unknown(m, "the sequence has passed")
        if found:
            return self.decide(m, found[0], "by call alone, seen once")
        return self._taken(m) or self._park(m, "a call id never seen")

    def _in_sequence(self, m: Model, found: list[ModelInterrupt]) -> Told:
        mine = [i for i in found if i.run == self.run]
        asked = [i for i in mine if (i.asked or i.seq) == self.seq]
        carried = [i for i in mine if i.state == "open" and (i.asked or i.seq) < self.seq <= i.seq]
        for i in (*asked, *carried):
            return self.decide(m, i, "by call, run and sequence")
        run = m.records.runs.get(self.run)
        if run and run.state in CLOSED:
            return self._unknown(m, "the run is closed")
        if run and run.seq >= self.seq:
            return self._unknown(m, "the sequence has passed")
        was = run.calls.get(self.call) if run else None
        if taken := self._taken(m):
            return taken
        if was == "resolved":
            return (m.says("answer by call", "interrupt", "none", "the call has its result").told, "")
        told = self._park(m, "a sequence ahead of the run")
        if run and was == "awaiting_completion" and told == ("parked",):
            run.calls[self.call] = m.table.row("settle", "call", was, "completed before its pause").next
            run.completed[self.call] = self.slot
        return told

    def _unknown(self, m: Model, guard: str) -> Told:
        return (m.says("answer by call", "interrupt", "none", guard).told,)

    def _taken(self, m: Model) -> Told | None:
        early = m.records.early.get((self.session, self.name))
        if early is None:
            return None
        if early.op == self.op:
            return (m.says("answer by call", "interrupt", "none", "the slot has an answer, of this op").told,)
        guard = "the slot has an answer, of another op"
        return (m.says("answer by call", "interrupt", "none", guard).told, early.op)

    def _park(self, m: Model, guard: str) -> Told:
        r, when = m.records, in_time(m, self.not_after)
        if when != "in time":
            return (m.says("answer by call", "interrupt", "none", when).told,)
        r.early[self.session, self.name] = ModelEarly(self.op, self.kind, self.slot, self.seen)
        r.verdicts.add(self.slot)
        r.retention[f"e {self.slot} {self.session}\x1f{self.name}"] = m.now + m.keep_parked
        return (m.says("answer by call", "interrupt", "none", guard).told,)
