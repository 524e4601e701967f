"""One namespace on a real server, driven script by script, with a clock that tests move instead of waiting."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from broker.core.answers import Answer, Approve, Principal
from broker.core.ids import new_run_id
from broker.core.models import Action, Interrupt, InterruptState
from broker.core.outcomes import Outcome
from broker.core.records import HistoryEntry, InterruptRecord
from broker.core.settings import Settings
from broker.core.states import Mode
from broker.renewer import run_command
from broker.store import prepare
from broker.store.commands import address, answers, inputs, pauses, reads, runs, sweep
from broker.store.commands.address import Address, RunAddress
from broker.store.commands.runs import Leased, Place, Token
from broker.store.commands.sweep import Stale
from broker.store.commands.values import Command, Read, Recheck
from broker.store.connect import Options, sync_client
from broker.store.keys import Keyspace, Pool
from broker.store.scripts import Rendering
from tests.records import fields
from tests.waiters import Waiters

from . import snapshot

T = TypeVar("T")

ANN = Principal(id="ann", groups=("refunds",))
BOB = Principal(id="bob")
SESSION = "thread/7:blue"
MOVED_CLOCK = Rendering(clock=True)
SETTINGS = Settings(tries=3)
POOL = Pool("agents", "airline")
WINDOW = timedelta(minutes=10)


def approval(call: str = "c1", amount: int = 40, **rest: Any) -> Interrupt:
    """The question whether a refund may be paid."""
    return Interrupt.approval(Action(tool="refund", arguments={"amount": amount}), call, **rest)


def completion(call: str = "c1", **rest: Any) -> Interrupt:
    """The wait for a video that is rendered elsewhere."""
    return Interrupt.completion(
        Action(tool="render", arguments={"prompt": "x"}), call, handle="job-1", **rest
    )


class World:
    """Everything a test does to one partition, and everything it can see there."""

    def __init__(self, url: str, namespace: str, rendering: Rendering = MOVED_CLOCK) -> None:
        self.url = url
        self.namespace = namespace
        self.rendering = rendering
        self.settings = SETTINGS
        self.p = Keyspace(namespace, 1).partition(0)
        self.client: Any = sync_client(url, Options(), 5)
        self._ahead = 0

    def close(self) -> None:
        """Gives the connections back."""
        if "waiters" in vars(self):
            self.waiters.close()
        self.client.close()

    @cached_property
    def waiters(self) -> Waiters:
        """Workers that wait, from the first time that anybody asks."""
        return Waiters(self.url, self.p, POOL)

    # Time and calls --------------------------------------------------------------------------------------------

    def now(self) -> int:
        """The time the scripts see, in microseconds."""
        seconds, micro = self.client.time()
        return int(seconds) * 1_000_000 + int(micro) + self._ahead

    def forward(self, **span: float) -> None:
        """Moves the clock of the scripts ahead."""
        self._ahead += round(timedelta(**span).total_seconds() * 1_000_000)
        self.client.set(self.key("clock"), self._ahead)

    def key(self, kind: str, name: object = "") -> str:
        """The name of a key."""
        return self.p.key(kind, name)

    def all(self, command: Command[T]) -> list[T | BaseException]:
        """What each item of a script call came to."""
        return run_command(self.client, command, self.settings, self.rendering)

    def do(self, command: Command[T]) -> T:
        """What the one item of a script call came to; raises its fault."""
        (result,) = self.all(command)
        if isinstance(result, BaseException):
            raise result
        return result

    def read(self, what: Read[T]) -> T:
        """What some plain reads say together."""
        pipe = self.client.pipeline(transaction=False)
        for one in what.commands:
            pipe.execute_command(*one)
        return what.decode(pipe.execute(raise_on_error=not what.forgiving) if what.commands else [])

    # Runs ------------------------------------------------------------------------------------------------------

    def place(
        self, name: str = "a", *, session: str = SESSION, pool: Pool = POOL, value: Any = None
    ) -> Place:
        """Where a run belongs; its id follows from session and name."""
        run = new_run_id(session, namespace=self.namespace, key=name)
        data = prepare.input_bytes(value, None, self.settings)
        return prepare.place(run, session, pool, data=data, by=ANN)

    def start(self, place: Place, *, op: str = "start-1", within: timedelta = WINDOW) -> Outcome:
        """Starts a run; the request is good for `within`."""
        until = self.now() + round(within.total_seconds() * 1_000_000)
        return self.do(runs.start(self.p, place, op=op, not_after=until, longest=self.settings.keep_settled))

    def adopt(self, place: Place, *, nonce: str = "n1", within: timedelta = WINDOW) -> Leased | Outcome:
        """Adopts a run that executes already."""
        until = self.now() + round(within.total_seconds() * 1_000_000)
        return self.do(
            runs.adopt(self.p, place, nonce=nonce, holder="w", lease=self.settings.lease, not_after=until,
                       longest=self.settings.keep_settled)
        )  # fmt: skip

    def lease(self, place: Place, nonce: str = "n1", *, holder: str = "w") -> Leased | None:
        """One try to lease a run."""
        at = (place.run, place.pool, place.session)
        return self.do(runs.lease(self.p, [at], nonces=[nonce], holder=holder, span=self.settings.lease))

    def leased(self, place: Place, nonce: str = "n1") -> Leased:
        """A lease that must be had."""
        found = self.lease(place, nonce)
        assert found is not None
        return found

    def started(self, name: str = "a", *, session: str = SESSION) -> tuple[Place, Leased]:
        """A run that was started and leased."""
        place = self.place(name, session=session)
        self.start(place)
        return place, self.leased(place)

    def hand(self, place: Place, nonce: str = "h1") -> int | None:
        """Hands a run to a job; how often it has been."""
        span = timedelta(seconds=30)
        made = runs.hand(self.p, [(place.run, place.pool)], nonces=[nonce], holder="d", span=span)
        return self.do(made)

    def finish(self, lease: Leased) -> str:
        """Finishes a run under a lease; its state after."""
        return self.do(runs.finish(lease, by=b"", result=b"result"))

    def fail(self, lease: Leased, *, pause: float = 0, final: bool = False) -> str:
        """Fails an attempt; the run's state after."""
        return self.do(runs.fail(lease, pause=timedelta(seconds=pause), final=final, kind="Boom", text="no"))

    def release(self, lease: Leased) -> None:
        """Gives a run back."""
        self.do(runs.release(lease))

    def renew(self, lease: Leased) -> int | None:
        """Renews a lease; until when it holds."""
        return self.do(runs.renew(self.p, [lease.token], self.settings.lease))

    def withdraw(self, place: Place, seq: int = 1, *, op: str = "wd-1", superseded: bool = False) -> Outcome:
        """Takes a suspension back."""
        a = address.at_seq(self.run_address(place), seq)
        return self.do(
            runs.withdraw(self.p, a, op=op, by=BOB.to_bytes(), reason="moot", superseded=superseded)
        )

    def requeue(self, place: Place, fence: int, *, op: str = "rq-1") -> Outcome:
        """Sends a dead run back."""
        a = address.at_fence(self.run_address(place), fence)
        return self.do(runs.requeue(self.p, a, op=op, by=BOB.to_bytes()))

    def put(self, place: Place, message: Any, *, op: str, most: int = 10) -> Outcome:
        """Input for a run that has begun."""
        made = inputs.say(
            self.p, place.run, place.session, message, op=op, by=ANN.to_bytes(), most=most, most_bytes=1000
        )
        return self.do(made)

    def move(self, place: Place, queue: str) -> Outcome:
        """Takes a run to another queue."""
        return self.do(runs.move(self.p, self.run_address(place), queue=queue, by=b""))

    def run_address(self, place: Place) -> RunAddress:
        """Where a run lies now, with its interrupts."""
        found = self.read(address.read_run_addresses(self.p, [place.run]))
        a = found[0] if found else RunAddress(place.run, place.session, place.pool)
        ids = [one.interrupt for one in a.interrupts]
        return address.with_interrupts(a, self.read(address.read_addresses(self.p, ids)))

    # Pauses ----------------------------------------------------------------------------------------------------

    def pause(
        self, place: Place, *interrupts: Interrupt, seq: int = 1, mode: Mode = Mode.ALL, token: Token | None = None,
        replace: bool = False, keep: Sequence[str] = (), within: timedelta = WINDOW,
    ) -> pauses.Pause:  # fmt: skip
        """A suspension as a value."""
        until = self.now() + round(within.total_seconds() * 1_000_000)
        made = prepare.pause(
            self.namespace, place, seq, InterruptState(), interrupts, self.settings, mode=mode, token=token,
            instead=replace, keep=keep, not_after=until,
        )  # fmt: skip
        return pauses.with_old(made, self.run_address(place).interrupts)

    def suspend(self, pause: pauses.Pause) -> Outcome:
        """Suspends; looks at early answers where the script asks for it."""
        try:
            return self.do(pauses.suspend(self.p, pause))
        except Recheck:
            calls = [q.call for q in pause.questions if q.early != "*" and q.call]
            found = self.read(
                address.read_early(self.p, pause.place.session, pause.place.run, pause.seq, calls)
            )
            seen = [(call, mark, self.read(reads.read_verdict(self.p, slot))) for call, mark, slot in found]
            return self.do(pauses.suspend(self.p, prepare.with_early(pause, seen)))

    def ask(
        self, lease: Leased, *interrupts: Interrupt, mode: Mode = Mode.ALL, keep: Sequence[str] = ()
    ) -> Outcome:
        """Suspends a leased run under its next sequence."""
        token, seq = lease.token, int(lease.text("seq")) + 1
        place = Place(token.run, lease.text("session"), lease.pool, 0, b"")
        return self.suspend(self.pause(place, *interrupts, seq=seq, mode=mode, token=token, keep=keep))

    def asked(
        self, *interrupts: Interrupt, name: str = "a", mode: Mode = Mode.ALL
    ) -> tuple[Place, tuple[str, ...]]:
        """A run that waits for these interrupts, and their ids."""
        place, lease = self.started(name)
        outcome = self.ask(lease, *(interrupts or (approval(),)), mode=mode)
        return place, getattr(outcome, "interrupt_ids", ())

    # Answers ---------------------------------------------------------------------------------------------------

    def at(self, interrupt: str) -> Address:
        """Where an interrupt lies, with its siblings where one answer may end them all."""
        (a,) = self.read(address.read_addresses(self.p, [interrupt]))
        if a.mode != Mode.FIRST:
            return a
        run = self.run_address(Place(a.run, a.session, a.pool, 0, b""))
        return prepare.with_siblings(a, [one for one in run.interrupts if one.interrupt != interrupt])

    def say(
        self, interrupt: str, answer: Answer | None = None, by: Principal = ANN, *, op: str | None = None,
        seen: str | None = None,
    ) -> tuple[Address, answers.Said]:  # fmt: skip
        """An answer to an interrupt, as an item of a batch."""
        asked = self.read(reads.read_asked(self.p, interrupt))
        question = asked[1].interrupt if asked else None
        return self.at(interrupt), prepare.verdict_of(
            question, interrupt, answer or Approve(), by, op=op, seen=seen
        )

    def answer(
        self, interrupt: str, answer: Answer | None = None, by: Principal = ANN, *, op: str | None = None,
        seen: str | None = None,
    ) -> Outcome:  # fmt: skip
        """What became of an answer."""
        return self.do(answers.answer(self.p, [self.say(interrupt, answer, by, op=op, seen=seen)]))

    def answer_unknown(self, interrupt: str, *, op: str = "op-1") -> Outcome:
        """An answer to an interrupt that nobody knows."""
        said = prepare.verdict_of(None, interrupt, Approve(), ANN, op=op, seen=None)
        return self.do(answers.answer_unknown(self.p, interrupt, said, WINDOW))

    def answer_call(
        self, call: str, answer: Answer | None = None, by: Principal = ANN, *, run: str = "", seq: int = 0,
        op: str | None = None, seen: str | None = None, session: str = SESSION, within: timedelta = WINDOW,
    ) -> Outcome:  # fmt: skip
        """What became of an answer that names its question by the call."""
        ids = self.read(address.read_aliases(self.p, session, call))
        known = tuple(self.at(one) for one in ids)
        question, about = None, address.early_identity(session, call)
        if ids and (asked := self.read(reads.read_asked(self.p, ids[-1]))):
            question, about = asked[1].interrupt, ids[-1]
        said = prepare.verdict_of(question, about, answer or Approve(), by, op=op, seen=seen)
        slot = address.early_slot(session, run, seq, call)
        at = answers.CallAddress(session, call, slot, run, seq, POOL if run else None, known)
        until = self.now() + round(within.total_seconds() * 1_000_000)
        return self.do(
            answers.answer_call(self.p, at, said, not_after=until, longest=self.settings.keep_settled)
        )

    # Sweeping --------------------------------------------------------------------------------------------------

    def expire(self, *interrupts: str, decider: bool = True) -> list[bool | BaseException]:
        """Ends interrupts that are due; whether each was ended."""
        return self.all(sweep.expire(self.p, [self.at(one) for one in interrupts], decider=decider))

    def heartbeat(self, interrupt: str) -> Outcome:
        """A job tells that it still runs."""
        return self.do(answers.heartbeat(self.p, self.at(interrupt)))

    def reclaim(self, place: Place, *, pause: float = 0) -> str:
        """Takes a lost lease back, or ends a back-off."""
        row = (place.run, place.session, place.pool)
        return self.do(sweep.reclaim(self.p, [row], [timedelta(seconds=pause)]))

    def ring(self, interrupt: str, group: str = "approvals") -> str:
        """Rings again for an interrupt where its bell was lost."""
        return self.do(sweep.ring(self.p, [self.at(interrupt)], group, self.settings.sweep_every))

    def stale(self) -> list[Stale]:
        """What retention asks to be deleted now."""
        due = self.read(sweep.read_due(self.p, self.now(), WINDOW, 100, ()))
        found = []
        for member in due.stale:
            if member[0] == "h":
                found.append(sweep.stale_history(self.p, member))
            elif member[0] == "e":
                found.append(sweep.stale_early(self.p, member))
            elif member[0] == "i":
                (a,) = self.read(address.read_addresses(self.p, [member[2:]])) or (Address.gone(member[2:]),)
                found.append(sweep.stale_interrupt(self.p, member, a))
            else:
                a_run = self.run_address(Place(member[2:], "", POOL, 0, b""))
                found.append(sweep.stale_run(self.p, member, a_run.session, a_run.interrupts))
        return found

    def collect(self) -> int:
        """Deletes what is due to be deleted; how much that was."""
        found = self.stale()
        return sum(1 for one in self.all(sweep.collect(self.p, found)) if one is True) if found else 0

    # Looking ---------------------------------------------------------------------------------------------------

    def field(self, kind: str, name: str, field: str) -> str:
        """One field of a record, empty where it is not set."""
        key = self.key(kind, name)
        if kind in ("run", "interrupt"):
            return fields(self.client.get(key)).get(field, b"").decode()
        return (self.client.hget(key, field) or b"").decode()

    def state(self, place: Place) -> str:
        """The state of a run, empty where there is none."""
        return self.field("run", place.run, "state")

    def settled(self, interrupt: str) -> str:
        """The state of an interrupt, empty where there is none."""
        return self.field("interrupt", interrupt, "state")

    def call(self, place: Place, call: str = "c1") -> str:
        """The state of a call record, empty where there is none."""
        return self.field("calls", place.run, call).partition(" ")[0]

    def record(self, interrupt: str) -> InterruptRecord:
        """One interrupt as readers get it."""
        (slot,) = self.read(reads.read_slots(self.p, [interrupt]))
        (found,) = self.read(reads.read_interrupts(self.p, [slot]))
        return found

    def history(self, session: str = SESSION) -> tuple[HistoryEntry, ...]:
        """The history of a session."""
        return self.read(reads.read_history(self.p, session, 0, -1))

    def ready(self) -> list[str]:
        """The runs that the pool's workers would be given, best first."""
        return [one.decode() for one in self.client.zrange(self.key("ready", POOL), 0, -1)]

    def open(self) -> list[str]:
        """The open interrupts, in the order they were asked."""
        lists = [name.decode() for name in self.client.smembers(self.key("lists"))]
        return [row.id for row in self.read(reads.page_of_open(self.p, lists, None, 1000)).rows]

    def bells(self) -> dict[str, int]:
        """How many entries each doorbell has, and how many workers were woken."""
        self.waiters.hear()
        streams = {name: self.client.xlen(self.key(name)) for name in ("interrupts", "dispositions")}
        return {"ready": len(self.waiters.heard), **streams}

    def snapshot(self, *leave_out: str, fields: Sequence[str] = ()) -> snapshot.Snapshot:
        """Every key of the namespace with its contents, without some kinds of keys and some fields of records."""
        skipped = tuple(self.key(kind) for kind in ("clock", *leave_out))
        found = snapshot.take(self.client, self.namespace, {name.encode() for name in fields})
        return {name: value for name, value in found.items() if not name.startswith(skipped)}
