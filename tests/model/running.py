"""Requests about a run: start, adopt, lease, renew, release, fail, finish, withdraw, requeue."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from broker.store.commands import address, runs
from broker.store.commands.runs import Leased, Place
from broker.store.commands.values import Command, micros, text

from .client import Client
from .request import Reply, Request, outcome
from .state import CLOSED, Model, ModelRun, Told


@dataclass(frozen=True, repr=False)
class AboutRun(Request):
    """A request about one run."""

    place: Place

    def run(self, m: Model) -> ModelRun:
        """The run in the model."""
        return m.run(self.place.run, self.place.session)


def in_time(m: Model, not_after: int) -> str:
    """Whether a creating request comes in its time."""
    if not_after <= m.now:
        return "its time is over"
    return "good for longer than the server accepts" if not_after > m.now + m.keep_settled else "in time"


def create(m: Model, run: ModelRun, start_op: str) -> None:
    """Enters a run among the records."""
    run.start_op = start_op
    m.records.runs[run.id] = run


@dataclass(frozen=True, repr=False)
class Start(AboutRun):
    op: str
    not_after: int

    def command(self, client: Client) -> Command[Any]:
        longest = client.settings.keep_settled
        return runs.start(client.p, self.place, op=self.op, not_after=self.not_after, longest=longest)

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        if run.state != "none":
            row = m.table.row(
                "start", "run", run.state, "by the same op" if run.start_op == self.op else "by another op"
            )
            m.records.bells |= row.bells if run.offered else set()
            return (row.told,)
        told = m.moves(run, "start", in_time(m, self.not_after))
        if run.state != "none":
            create(m, run, self.op)
        return (told,)


@dataclass(frozen=True, repr=False)
class Adopt(AboutRun):
    nonce: str
    not_after: int

    def command(self, client: Client) -> Command[Any]:
        s = client.settings
        return runs.adopt(client.p, self.place, nonce=self.nonce, holder="w", lease=s.lease, not_after=self.not_after,
                          longest=s.keep_settled)  # fmt: skip

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        if run.state == "none":
            told = m.moves(run, "adopt", in_time(m, self.not_after))
            if run.state != "none":
                create(m, run, f"adopt:{self.nonce}")
                run.fence = run.tries = 1
                run.nonce, run.until = self.nonce, m.now + m.lease
        elif run.state == "leased":
            own = run.seq == 0 and run.nonce == self.nonce
            told = m.moves(run, "adopt", "the same nonce, before the first pause" if own else "another nonce")
        else:
            told = m.moves(run, "adopt", "it was started")
        return (told, run.fence) if told in ("leased", "replayed") else (told,)

    def told(self, reply: Reply) -> Told:
        if not isinstance(reply.result, Leased):
            return outcome(reply.result)
        return ("replayed" if reply.before.of("run", self.place.run) else "leased", reply.result.token.fence)


@dataclass(frozen=True, repr=False)
class Lease(AboutRun):
    """One try to get a lease; with a `seq` only for that pause. Gives the answers that come with it."""

    nonce: str
    seq: str = ""

    def command(self, client: Client) -> Command[Any]:
        at = (self.place.run, self.place.pool, self.place.session)
        return runs.lease(
            client.p, [at], nonces=[self.nonce], holder="w", span=client.settings.lease, seq=self.seq
        )

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        told = m.moves(run, "lease", self._guard(m, run))
        if run.state == "dead" and told == "nothing":
            run.unlease()
        if told == "leased":
            run.fence += 1
            run.tries += 1
            run.nonce, run.until, run.ready_at = self.nonce, m.now + m.lease, 0
            run.shown = list(run.fresh)
        return (told,) if told == "nothing" else (told, run.fence, run.seq, run.shown)

    def _guard(self, m: Model, run: ModelRun) -> str:
        if run.state not in ("ready", "leased"):
            return "whatever"
        if self.seq and self.seq != str(run.seq):
            return "another sequence"
        if run.state == "ready":
            return "its back-off is not over" if run.ready_at > m.now else "free"
        if run.nonce == self.nonce:
            return "the same nonce"
        if run.until > m.now:
            return "held by another"
        return "run out, too many attempts" if run.tries >= m.tries else "run out"

    def told(self, reply: Reply) -> Told:
        if not isinstance(reply.result, Leased):
            assert reply.result is None, reply.result
            return ("nothing",)
        again = reply.before.of("run", self.place.run).get("fence") == str(reply.result.token.fence)
        seq = int(reply.result.text("seq"))
        return (
            "replayed" if again else "leased",
            reply.result.token.fence,
            seq,
            reply.result.text("shown").split(),
        )


@dataclass(frozen=True, repr=False)
class Held(Request):
    """A request that shows a lease, the present one or an old one."""

    lease: Leased

    def run(self, m: Model) -> ModelRun:
        """The run in the model."""
        return m.run(self.lease.token.run, self.lease.text("session"))

    def holds(self, m: Model) -> bool:
        """Whether the lease is the present one."""
        run, token = self.run(m), self.lease.token
        return run.state == "leased" and (run.fence, run.nonce) == (token.fence, token.nonce)

    def stale(self, m: Model, operation: str) -> Told:
        """What a stale lease is told."""
        run = self.run(m)
        guard = "the token it had" if run.state == "ready" else "another token"
        return (m.moves(run, operation, guard),)

    def told(self, reply: Reply) -> Told:
        return (text(reply.rows[0][0]),)


@dataclass(frozen=True, repr=False)
class Renew(Held):
    def command(self, client: Client) -> Command[Any]:
        return runs.renew(client.p, [self.lease.token], client.settings.lease)

    def expected(self, m: Model) -> Told:
        if not self.holds(m):
            return self.stale(m, "renew")
        run = self.run(m)
        told = m.moves(run, "renew", "its token" if run.until > m.now else "its token, run out, nobody came")
        run.until = m.now + m.lease
        return (told,)


@dataclass(frozen=True, repr=False)
class Release(Held):
    def command(self, client: Client) -> Command[Any]:
        _ = client
        return runs.release(self.lease)

    def expected(self, m: Model) -> Told:
        if not self.holds(m):
            return self.stale(m, "release")
        run = self.run(m)
        told = m.moves(run, "release", "its token")
        run.unlease()
        run.tries -= 1
        return (told,)


@dataclass(frozen=True, repr=False)
class Fail(Held):
    pause: timedelta
    final: bool

    def command(self, client: Client) -> Command[Any]:
        _ = client
        return runs.fail(self.lease, pause=self.pause, final=self.final, kind="Boom", text="no")

    def expected(self, m: Model) -> Told:
        if not self.holds(m):
            return self.stale(m, "fail")
        run = self.run(m)
        if self.final:
            run.tries = m.tries
            guard = "said to be final"
        elif run.tries >= m.tries:
            guard = "the last attempt"
        else:
            guard = "attempts left, after a pause" if self.pause else "attempts left, no pause"
        return (ended(m, run, "fail", guard, self.pause),)


def ended(m: Model, run: ModelRun, operation: str, guard: str, pause: timedelta) -> str:
    """Ends a failed attempt: back after a pause, or dead."""
    told = m.moves(run, operation, guard)
    run.unlease()
    if run.state == "ready" and pause:
        run.ready_at = m.now + micros(pause)
    return told


@dataclass(frozen=True, repr=False)
class Finish(Held):
    def command(self, client: Client) -> Command[Any]:
        _ = client
        return runs.finish(self.lease, by=b"", result=b"result")

    def expected(self, m: Model) -> Told:
        run, token = self.run(m), self.lease.token
        if run.state == "finished":
            own = (run.fence, run.nonce) == (token.fence, token.nonce)
            return (m.moves(run, "finish", "its last token" if own else "another token"),)
        if not self.holds(m):
            return self.stale(m, "finish")
        fresh = [one for one in run.fresh if one not in run.shown]
        guard = "its token"
        if run.mode == "each" and (fresh or m.open_of(run)):
            guard = "mode each: news nobody has read" if fresh else "mode each: one is open"
        told = m.moves(run, "finish", guard)
        if run.state in CLOSED:
            run.until, run.shown, run.fresh = 0, [], []
            m.close(run)
        else:
            run.unlease()
            run.fresh, run.tries = fresh, 0
        return (told,)


@dataclass(frozen=True, repr=False)
class Withdraw(AboutRun):
    op: str
    seq: int

    def command(self, client: Client) -> Command[Any]:
        a = address.at_seq(client.run_address(self.place), self.seq)
        return runs.withdraw(client.p, a, op=self.op, by=b"", reason="moot")

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        if run.state == "none":
            return (m.moves(run, "withdraw", "no such run"),)
        if run.withdraw_op == self.op:
            return (m.moves(run, "withdraw", "its own op"),)
        if self.op in run.refused:
            return (m.moves(run, "withdraw", "refused before, under a lease"),)
        if run.state in CLOSED:
            return (m.moves(run, "withdraw", "another op"), None)
        if run.seq != self.seq:
            return (m.moves(run, "withdraw", "another sequence"), None)
        for i in m.open_of(run):
            if m.due(i):
                m.expire(i, "due, met by a withdrawal")
        return (self._take_back(m, run),)

    def _take_back(self, m: Model, run: ModelRun) -> str:
        left = m.open_of(run)
        if run.state == "leased" and not left:
            run.refused.append(self.op)
            return m.moves(run, "withdraw", "nothing is open")
        for i in left:
            m.settle(i, "withdraw", "its run is withdrawn", self.op, quiet=True)
        run.withdraw_op = self.op
        told = m.moves(run, "withdraw", "something is open" if run.state == "leased" else "its sequence")
        if run.state in CLOSED:
            run.ready_at = 0
            m.close(run)
        return told


@dataclass(frozen=True, repr=False)
class Requeue(AboutRun):
    op: str
    fence: int

    def command(self, client: Client) -> Command[Any]:
        a = address.at_fence(client.run_address(self.place), self.fence)
        return runs.requeue(client.p, a, op=self.op, by=b"")

    def expected(self, m: Model) -> Told:
        run = self.run(m)
        if run.state == "none":
            return (m.moves(run, "requeue", "no such run"),)
        if run.requeue_op == self.op:
            guard = "its own op, about an earlier death" if run.state == "dead" else "its own op"
            return (m.moves(run, "requeue", guard),)
        if run.state != "dead":
            return (m.moves(run, "requeue", "another op"),)
        if run.fence != self.fence:
            return (m.moves(run, "requeue", "another fence"),)
        unread = run.mode == "each" and run.fresh
        guard = "one is open, nothing is unread"
        if unread or not m.open_of(run):
            guard = "one is open, one is unread" if unread and m.open_of(run) else "nothing is open"
        told = m.moves(run, "requeue", guard)
        run.requeue_op, run.tries = self.op, 0
        return (told,)
