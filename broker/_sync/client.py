# Generated from broker/_async/client.py by tests/tools/unasync.py (make sync): do not edit.
"""The front door: one broker of one namespace, and the nouns that group what it does."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self

from ..core.answers import Cancel, Principal
from ..core.diagnosis import Checked
from ..core.fleet import Fleet
from ..core.ids import bits_of, new_nonce, new_run_id, session_hash
from ..core.limits import JSON, check_id, check_name, check_range
from ..core.models import Interrupt, InterruptState
from ..core.outcomes import Accepted, Outcome, Replayed
from ..core.records import HistoryEntry, Resolution, RunRecord
from ..core.settings import Settings
from ..core.states import Mode
from ..embedded import resolve
from ..errors import InvalidInput, Refused
from ..store import prepare
from ..store.commands import address, reads, runs
from ..store.connect import Options
from ..store.keys import Pool
from ..store.scripts import Rendering
from ..telemetry import Observer
from .batches import Batch
from .checking import MOST_CHECKED, Check, Walk
from .events import Events
from .fleet import fleet
from .hooks import Hooks
from .inbox import Inbox
from .intakes import Intakes
from .jobs import Jobs
from .keys import Keys
from .link import Link
from .run import Run, suspend
from .runs import Dead, Queue, Runs, held
from .signing import Signing
from .tokens import Tokens

FARTHEST = 2**53
"""The furthest place in a history that may be asked for."""


class Broker(Jobs):
    """The pauses of one namespace: `with Broker(url, namespace="airline") as broker: ...`.

    `url` is redis://, rediss:// or unix://; without one it is `BROKER_URL`, else the embedded server of this user. A
    redis-py client may be given instead: its address, credentials and encryption are used, not its connections.
    `settings` and `partitions` count when the namespace is new; later they must agree with it. `by` is who acts where a
    call names nobody. `observer` is told of every call. Without `create` a namespace
    that does not exist is not made and reads as empty. It opens at the first call and may be used by any number of
    tasks of one event loop.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "default",
        client: Any = None,
        settings: Settings | None = None,
        partitions: int | None = None,
        by: Principal | None = None,
        patience: float = 10.0,
        options: Options | None = None,
        rendering: Rendering | None = None,
        observer: Observer | None = None,
        create: bool = True,
    ) -> None:
        if url is not None and client is not None:
            raise InvalidInput("client", "is given beside url", "one of the two")
        source = client if client is not None else resolve(url)
        self._link: Link = Link(
            source,
            namespace,
            settings,
            partitions=partitions,
            patience=patience,
            rendering=rendering,
            by=by,
            options=options,
            observer=observer,
            create=create,
        )
        self.inbox: Inbox = Inbox(self._link)
        self.batch: Batch = Batch(self._link, self.inbox)
        self.runs: Runs = Runs(self._link)
        self.dead: Dead = Dead(self._link, self.runs)
        self.events: Events = Events(self._link)
        self.hooks: Hooks = Hooks(self._link, self.events)
        self.intakes: Intakes = Intakes(self._link)
        self.keys: Keys = Keys(self._link)
        self.signing: Signing = Signing(self._link)
        self.tokens: Tokens = Tokens(self._link, self.signing, self.inbox)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(namespace={self._link.namespace!r})"

    @property
    def namespace(self) -> str:
        """The namespace this broker is for."""
        return self._link.namespace

    def open(self) -> Self:
        """Connects and checks server, user and namespace now instead of at the first call. Safe to repeat."""
        self._link.open()
        return self

    def close(self) -> None:
        """Closes every connection. Safe to repeat."""
        self._link.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    # Runs ------------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """One queue by its name."""
        return Queue(self._link, name)

    def start(
        self,
        agent: str,
        input: Any = None,  # noqa: A002
        *,
        session: str,
        key: str | None = None,
        queue: str = "agents",
        build: str | None = None,
        priority: int = 0,
        metadata: dict[str, JSON] | None = None,
        protocol_id: str | None = None,
        by: Principal | None = None,
    ) -> Accepted | Replayed:
        """A new run, ready for a worker of its queue that knows the agent: its id is in the outcome.

        With a `key` the run's id follows from (namespace, session, key): the same start again is `Replayed` with the
        same id, another one under that key raises `Refused` with `Conflict` (F05, F06). Without a key each call is a
        new run. `build` pins the run to workers of that build, `protocol_id` is the run of a protocol that it belongs
        to. Raises `InvalidInput`, `Refused`, `OutOfMemory`.
        """
        place = self._place(
            agent,
            input,
            session,
            key=key,
            queue=queue,
            build=build,
            by=by,
            priority=priority,
            metadata=metadata,
            protocol_id=protocol_id,
        )
        op = prepare.start_op(place) if key is not None else f"start-{place.run}"
        p = self._link.space.of_session(session)
        until = self._link.not_after()
        outcome = self._link.run(
            runs.start(p, place, op=op, not_after=until, longest=self._link.settings.keep_settled)
        )
        if isinstance(outcome, Accepted | Replayed):
            return outcome
        raise Refused(outcome)

    @contextlib.contextmanager
    def adopt(
        self, agent: str, input: Any = None,  # noqa: A002
        *, session: str, key: str | None = None, queue: str = "agents",
        build: str | None = None, holder: str = "adopt", protocol_id: str | None = None,
        by: Principal | None = None,
    ) -> Iterator[Run[Any]]:  # fmt: skip
        """A run that this process is executing already, recorded and leased to it for the length of the block.

        Raises `Refused` where the key's run exists already (another delivery of the same job got it).
        """
        place = self._place(
            agent, input, session, key=key, queue=queue, build=build, by=by, protocol_id=protocol_id
        )
        p = self._link.space.of_session(session)
        settings = self._link.settings
        leased = self._link.run(
            runs.adopt(p, place, nonce=new_nonce(), holder=holder, lease=settings.lease,
                       not_after=self._link.not_after(), longest=settings.keep_settled)
        )  # fmt: skip
        if not isinstance(leased, runs.Leased):
            raise Refused(leased)
        with held(self._link, leased) as run:
            yield run

    def suspend(
        self,
        agent: str,
        *interrupts: Interrupt,
        session: str,
        state: InterruptState | None = None,
        key: str | None = None,
        run_id: str | None = None,
        seq: int = 1,
        replace: bool = False,
        mode: Mode = Mode.ALL,
        queue: str = "agents",
        build: str | None = None,
        input: Any = None,  # noqa: A002
        protocol_id: str | None = None,
        by: Principal | None = None,
    ) -> Accepted | Replayed:
        """A pause of a run that no worker of the broker holds: the first thing known of it, or in place of its last.

        With a `key` (or `run_id`) the same pause again is `Replayed` with the same interrupt ids; other questions at
        the same point raise `Refused` with `Conflict`, unless `replace` says that they supersede the open ones, under
        the next `seq`. Raises `InvalidInput`, `Refused`, `OutOfMemory`; nothing is half written.
        """
        place = self._place(
            agent, input, session, key=key, queue=queue, build=build, by=by, protocol_id=protocol_id
        )
        p = self._link.space.of_session(session)
        old: tuple[address.Address, ...] = ()
        if run_id is not None:
            if bits_of(check_id("run_id", run_id)) != session_hash(session):
                raise InvalidInput("run_id", "is no run of this session", "an id that the broker gave")
            place = prepare.at_run(place, run_id)
        if replace:
            at = self._link.fetch(address.read_run_address(p, place.run))
            old = self._link.fetch(address.read_addresses(p, [one.interrupt for one in at.interrupts]))
        with self._link.span("broker.suspend", run=place.run, session=session) as traceparent:
            pause = prepare.pause(
                self._link.namespace, place, seq, state or InterruptState(), interrupts, self._link.settings,
                mode=mode, instead=replace, not_after=self._link.not_after(), traceparent=traceparent,
            )  # fmt: skip
            return suspend(self._link, p, pause, old)

    def _place(
        self, agent: str, value: Any, session: str, *, key: str | None, queue: str, build: str | None,
        by: Principal | None, priority: int = 0, metadata: dict[str, JSON] | None = None,
        protocol_id: str | None = None,
    ) -> runs.Place:  # fmt: skip
        pool = Pool(
            check_name("queue", queue),
            check_name("agent", agent),
            check_name("build", build) if build else "",
        )
        check_id("session", session)
        if key is not None:
            check_id("key", key)
        self._link.open()
        run = new_run_id(session, namespace=self.namespace, key=key)
        data = prepare.input_bytes(value, metadata, self._link.settings, protocol_id=protocol_id)
        return prepare.place(run, session, pool, priority=priority, data=data, by=by or self._link.by)

    @contextlib.contextmanager
    def take(
        self, run_id: str, *, holder: str = "take", check: Callable[[str, str | None], None] | None = None
    ) -> Iterator[Run[Any]]:
        """A ready run leased to this caller for the length of the block; see `Runs.take`."""
        with self.runs.take(run_id, holder=holder, check=check) as run:
            yield run

    # Answers ---------------------------------------------------------------------------------------------------

    def cancel(self, interrupt_id: str, reason: str | None = None, *, by: Principal | None = None) -> Outcome:
        """What became of saying that nobody is going to answer; not a rejection. Safe to repeat."""
        return self.inbox.answer(interrupt_id, Cancel(reason=reason), by=by)

    def wait(self, id: str, timeout: float | None = None) -> Resolution | RunRecord:
        """How an interrupt ended, or a run that is closed or dead, by its id: see `Inbox.wait` and `Runs.wait`."""
        check_id("id", id)
        return self.runs.wait(id, timeout) if id.startswith("run_") else self.inbox.wait(id, timeout)

    # Looking ---------------------------------------------------------------------------------------------------

    def active(self, session: str) -> dict[str, int]:
        """The runs of a session that are interrupted, each with the number of its pause: one read. Empty: none is.

        A run is in it from its pause until it is finished or withdrawn; a dead one stays (P7).
        """
        check_id("session", session)
        self._link.open()
        return self._link.fetch(reads.read_active(self._link.space.of_session(session), session))

    def history(self, session: str, *, start: int = 0, limit: int = 100) -> tuple[HistoryEntry, ...]:
        """What happened in a session, oldest first, from place `start` (negative: from the end): who, when, what."""
        check_id("session", session)
        check_range("limit", limit, 1, 1000)
        check_range("start", start, -FARTHEST, FARTHEST)
        self._link.open()
        p = self._link.space.of_session(session)
        stop = start + limit - 1 if start >= 0 else min(-1, start + limit - 1)
        return self._link.fetch(reads.read_history(p, session, start, stop))

    def fleet(self) -> Fleet:
        """What the namespace holds now: open, ready and dead, how long the oldest waits, and the workers there are.

        It only reads, as much as there are queues, agents and kinds of question, however many runs there are.
        """
        self._link.open()
        return fleet(self._link)

    def check(
        self, *, within: timedelta | None = None, cursor: str | None = None, limit: int = 10_000
    ) -> Checked:
        """What is wrong in the namespace: whatever waits has something that ends it, whatever is ready is taken.

        `within` says how late is too late (default two leases). It looks at about `limit` records and gives a cursor
        to go on from, None at the end. It only reads; see `Runs.why` for one run.
        """
        check_range("limit", limit, 1, MOST_CHECKED)
        self._link.open()
        walk = Walk.parse(cursor, self._link.space.count)
        return Check(self._link, walk, within).run(limit)


__all__: Sequence[str] = ["Broker"]
