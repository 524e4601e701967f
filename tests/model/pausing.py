"""Requests that pause a run: from a lease, in place of a pause, or as the first thing known of it."""

from dataclasses import dataclass, field, replace
from typing import Any

from broker.core.models import Interrupt
from broker.store import prepare
from broker.store.commands import address, pauses, reads
from broker.store.commands.pauses import Pause, Question
from broker.store.commands.values import Command

from .client import Client
from .request import Request
from .running import create, in_time
from .state import Model, ModelInterrupt, ModelRun, Told, Undone


@dataclass(frozen=True, repr=False)
class Suspend(Request):
    """One pause. `asked` are the questions as they were written, for the model's own look at early answers."""

    pause: Pause
    asked: tuple[Interrupt, ...] = field(repr=False)

    def command(self, client: Client) -> Command[Any]:
        return pauses.suspend(
            client.p, pauses.with_old(self.pause, client.run_address(self.pause.place).interrupts)
        )

    def looked(self, client: Client) -> Request:
        pause = self.pause
        calls = [q.call for q in pause.questions if q.early != "*" and q.call]
        found = client.read(
            address.read_early(client.p, pause.place.session, pause.place.run, pause.seq, calls)
        )
        seen = [(call, mark, client.read(reads.read_verdict(client.p, slot))) for call, mark, slot in found]
        fresh = pause._replace(
            questions=tuple(q._replace(early="" if q.early != "*" else "*") for q in pause.questions)
        )
        return replace(self, pause=prepare.with_early(fresh, seen))

    def expected(self, m: Model) -> Told:
        try:
            with m.whole():
                return self._expected(m)
        except Undone as undone:
            return undone.told

    def _expected(self, m: Model) -> Told:
        pause = self.pause
        run = m.run(pause.place.run, pause.place.session)
        if run.state != "none" and (run.point, run.seq) == (pause.op, pause.seq):
            guard = (
                "the same point and content"
                if run.digest == pause.digest
                else "the same point, other content"
            )
            row = m.table.row("suspend", "run", run.state, guard)
            if row.told == "replayed":
                m.rings_again(run)
            return (row.told,)
        found, shown = run.state, list(run.shown)
        refused = self._refused(m, run)
        if refused is not None:
            return (m.moves(run, refused[0], refused[1]),)
        operation = "replace" if pause.token is None and found != "none" else "suspend"
        fresh = self._carry(m, run, shown)
        run.unlease()
        run.state = "waiting"
        run.seq, run.point, run.digest, run.mode, run.tries = (
            pause.seq,
            pause.op,
            pause.digest,
            str(pause.mode),
            0,
        )
        run.fresh = list(fresh)
        self._ask(m, run)
        return (self._row(m, run, operation, found, news=bool(fresh)),)

    def _refused(self, m: Model, run: ModelRun) -> tuple[str, str] | None:
        """The operation and guard that refuse it, None where the pause may be made."""
        if run.state == "none":
            return self._refused_first(m, run)
        if self.pause.token is not None:
            return self._refused_lease(m, run)
        if not self.pause.replace:
            return "suspend", "another point" if run.state == "waiting" else "no token"
        if self.pause.seq != run.seq + 1:
            return "replace", "another sequence"
        if run.state == "waiting":
            self._expire_due(m, run)
        return None if run.state == "waiting" else ("replace", "no token")

    def _refused_first(self, m: Model, run: ModelRun) -> tuple[str, str] | None:
        if self.pause.token is not None:
            return "suspend", "with a token"
        if self.pause.seq != 1:
            return "suspend", "not its first pause"
        if (when := in_time(m, self.pause.not_after)) != "in time":
            return "suspend", when
        create(m, run, "")
        return None

    def _refused_lease(self, m: Model, run: ModelRun) -> tuple[str, str] | None:
        token = self.pause.token
        if run.state != "leased" or token is None or (run.fence, run.nonce) != (token.fence, token.nonce):
            guards = {"leased": "another token", "dead": "the token it died with"}
            return "suspend", guards.get(run.state, "a token")
        if self.pause.seq != run.seq + 1:
            return "suspend", "another sequence"
        self._expire_due(m, run)
        return None

    def _expire_due(self, m: Model, run: ModelRun) -> None:
        """A default answer is a verdict, which one who suspends may not write."""
        for i in m.open_of(run):
            if m.due(i) and i.policy != "default":
                m.expire(i)

    def _carry(self, m: Model, run: ModelRun, shown: list[str]) -> list[str]:
        """The old interrupts: kept and unread ones go along, the others end. Gives the unread ones."""
        kept, fresh = list[str](), list[str]()
        for one in run.ids:
            i = m.records.interrupts[one]
            unread = run.mode == "each" and one in run.fresh and one not in shown
            if i.state == "open" and one not in self.pause.keep:
                again = "mode each: the run asks again and does not keep it"
                guard = "its pause is replaced" if self.pause.replace else again
                m.settle(i, "supersede", guard, self.pause.op, quiet=True)
            if i.state == "open" or unread:
                kept.append(one)
                i.asked, i.seq = i.asked or i.seq, self.pause.seq
                fresh += [one] if unread else []
            else:
                m.records.retention[f"i {one}"] = m.now + m.keep_settled
        run.ids = kept
        return fresh

    def _ask(self, m: Model, run: ModelRun) -> None:
        asked = [self._add(m, run, q, one) for q, one in zip(self.pause.questions, self.asked, strict=True)]
        for i in asked:
            if i.call:
                self._match(m, run, i)
        m.ring([i for i in asked if i.state == "open"])

    def _add(self, m: Model, run: ModelRun, q: Question, one: Interrupt) -> ModelInterrupt:
        r, deadline = m.records, None
        if q.deadline:
            deadline = m.now + int(q.deadline[1:]) if q.deadline[0] == "+" else int(q.deadline)
        if deadline is not None and deadline <= m.now:
            raise Undone(m.table.row("suspend", "interrupt", "none", "its deadline is past").told)
        default = str(one.default_answer.kind) if one.default_answer else ""
        i = ModelInterrupt(q.id, run.id, q.call, q.audience, tuple(q.offers.split(",")), q.digest, q.expiry, default,
                           deadline, self.pause.seq)  # fmt: skip
        i.state = m.table.row("suspend", "interrupt", "none", "asked").next
        r.interrupts[i.id] = i
        run.ids.append(i.id)
        if q.call:
            r.aliases.setdefault((run.session, q.call), []).append(i.id)
            wanted = "awaiting_completion" if q.audience == "completions" else "awaiting_confirmation"
            if m.table.leads("suspend", "call", run.calls.get(q.call, "none"), wanted):
                run.calls[q.call] = wanted
                run.completed.pop(q.call, None)
        return i

    def _match(self, m: Model, run: ModelRun, i: ModelInterrupt) -> None:
        """Answers that came before it: for this pause, and by the call alone where no other had that call id."""
        r = m.records
        for name in (f"r {run.id} {i.seq} {i.call}", f"c {i.call}"):
            sole = name[0] == "r" or r.aliases[run.session, i.call] == [i.id]
            early = r.early.get((run.session, name)) if sole else None
            if early is None:
                continue
            del r.early[run.session, name]
            fits = early.kind in i.offers and early.seen in ("", i.digest)
            if not fits or i.state != "open":
                r.bells.add("dispositions")
                continue
            r.retention.pop(f"e {early.slot} {run.session}\x1f{name}")
            i.slot = early.slot
            guard = "a cancel" if early.kind == "cancel" else "another one is open"
            m.settle(i, "answer", guard, early.op, early.kind)

    def _row(self, m: Model, run: ModelRun, operation: str, found: str, *, news: bool) -> str:
        """The row of the pause as a whole, and what it rings; what early answers rang is counted already."""
        open_ = m.open_of(run)
        if run.state == "waiting" and news and (not open_ or run.mode == "each"):
            guard = "mode each, news nobody has read"
        elif run.state == "waiting" and not open_:
            raise Undone(m.table.row("suspend", "run", "leased", "nothing that could end it").told)
        elif not open_:
            guard = "all was answered early"
        else:
            guard = {"none": "the first thing known of it", "waiting": "next sequence"}.get(
                found, "token and next sequence"
            )
        row = m.table.row(operation, "run", found, guard)
        m.records.bells |= row.bells & {"ready"}
        if row.next == "ready":
            run.state, run.tries = row.next, 0
        return row.told
