"""Runs as operators and dispatchers see them: look, lease, withdraw, move, and the dead letters."""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from ..core.answers import Principal
from ..core.diagnosis import Why
from ..core.digest import content_digest
from ..core.ids import bits_of, new_nonce
from ..core.limits import JSON, check_id, check_json, check_name, check_range
from ..core.models import InterruptState
from ..core.outcomes import Outcome
from ..core.records import RunRecord, protocol_runs
from ..core.states import CLOSED, RunState
from ..errors import AlreadyLeased, AttemptOver, BrokerError, Corrupt, Paused, UnknownId
from ..renewer import Renewer
from ..store import prepare
from ..store.commands import address, inputs, reads, runs
from ..store.commands.address import RunAddress
from ..store.commands.values import Command, read_all
from ..store.keys import Partition, Pool
from ._runtime import Stopped
from .diagnosis import why
from .link import Link
from .ready import Leases
from .run import Run
from .waiting import wait_for

log = logging.getLogger("broker")

MOST_AT_ONCE = 64
MOST_LISTED = 500


class Runs:
    """The runs of a namespace."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, run_id: str) -> RunRecord:
        """One run with its input, result and errors. Raises `UnknownId`, `Corrupt`."""
        p = await self._partition(run_id)
        found = await self._link.fetch(reads.read_run(p, run_id))
        if found is None:
            raise UnknownId("run", run_id)
        if not found.protocol_ids or not found.interrupt_ids:
            return found
        slots = await self._link.fetch(reads.read_slots(p, found.interrupt_ids))
        asked = await self._link.fetch(reads.read_interrupts(p, slots))
        return found.model_copy(update={"protocol_ids": protocol_runs(found.protocol_ids, asked)})

    async def wait(self, run_id: str, timeout: float | None = None) -> RunRecord:
        """A run once it is finished, withdrawn or dead; raises `WaitTimeout` after so many seconds."""
        p = await self._partition(run_id)

        async def look() -> RunRecord | None:
            found = await self.get(run_id)
            return found if found.state in CLOSED or found.state is RunState.DEAD else None

        return await wait_for(self._link, p, run_id, timeout, look)

    async def why(self, run_id: str) -> Why:
        """Why a run stands where it stands: what it waits for, who could move it on, and what to do if nobody does.

        Raises `UnknownId`, `Corrupt`. It only reads.
        """
        return await why(self._link, await self._partition(run_id), run_id)

    async def state(self, run_id: str) -> InterruptState | None:
        """The frozen state of a run's last pause; None where it never paused. Raises `Corrupt`."""
        return await self._link.fetch(reads.read_state(await self._partition(run_id), run_id))

    async def withdraw(
        self,
        run_id: str,
        *,
        seq: int | None = None,
        reason: str = "",
        superseded: bool = False,
        by: Principal | None = None,
        op: str | None = None,
    ) -> Outcome:
        """Takes back a run's open questions and closes it; whoever answers later is told so (F37).

        They end as withdrawn, or as `superseded` where something else, such as new input, has come in their place.

        It is about one pause (`seq`, default the present one). While a worker holds the run and nothing is open it is
        refused with `Conflict`, for this operation for good. Safe to repeat.
        """
        who = by or self._link.by
        stored = who.to_bytes() if who else b""
        p = await self._partition(run_id)
        if op is not None:
            prepare.check_op(op)

        async def make() -> Command[Outcome]:
            a = await self._full(p, run_id)
            about = a.seq if seq is None else seq
            name = (
                op
                or f"wd-{content_digest(f'{run_id} {about} {who.id if who else None} {reason}'.encode())[:32]}"
            )
            return runs.withdraw(
                p, address.at_seq(a, about), op=name, by=stored, reason=reason[:1000], superseded=superseded
            )

        return await self._link.chase(make)

    async def say(
        self, run_id: str, message: JSON, *, by: Principal | None = None, op: str | None = None
    ) -> Outcome:
        """What became of input for a run that has begun: it is kept in order, whether the run waits or is at work.

        Its handler reads it by `Run.said`. A closed run takes none: `Conflict`. Each call is another message; one with
        an `op` is safe to repeat. Raises `UnknownId`, `InvalidInput`, `OutOfMemory`.
        """
        p = await self._partition(run_id)
        who, limits = by or self._link.by, self._link.settings.limits
        a = await self._link.fetch(address.read_run_address(p, run_id))
        command = inputs.say(
            p, run_id, a.session, check_json("message", message),
            op=prepare.check_op(op) if op is not None else f"say-{new_nonce()}",
            by=who.to_bytes() if who else b"", most=limits.journal_entries, most_bytes=limits.record_bytes,
        )  # fmt: skip
        return await self._link.run(command)

    async def said(self, run_id: str) -> tuple[JSON, ...]:
        """The input that was said to a run after it had begun, oldest first."""
        return await self._link.fetch(inputs.read_said(await self._partition(run_id), run_id))

    async def move(self, run_id: str, queue: str, *, by: Principal | None = None) -> Outcome:
        """Takes a run, with its open questions, to another queue. Safe to repeat."""
        check_name("queue", queue)
        who = by or self._link.by
        p = await self._partition(run_id)

        async def make() -> Command[Outcome]:
            a = await self._full(p, run_id)
            return runs.move(p, a, queue=queue, by=who.to_bytes() if who else b"")

        return await self._link.chase(make)

    @contextlib.asynccontextmanager
    async def take(
        self, run_id: str, *, holder: str = "take", check: Callable[[str, str | None], None] | None = None
    ) -> AsyncIterator[Run[Any]]:
        """A run leased to this caller for the length of the block. Raises `AlreadyLeased`, `UnknownId`.

        The lease is renewed from a thread. A block that ends without `suspend`, `finish` or `fail` releases the run;
        one that raises fails the attempt. One that pauses is left without an error. `check` gets the agent and the
        build of a run that might be leased; what it raises leaves the run as it was.
        """
        p = await self._partition(run_id)
        a = await self._link.fetch(address.read_run_address(p, run_id))
        if check is not None and a.state in (RunState.READY, RunState.LEASED):
            check(a.pool.agent, a.pool.build or None)
        (leased,) = await self._link.run_all(
            runs.lease(
                p,
                [(run_id, a.pool, a.session)],
                nonces=[new_nonce()],
                holder=holder,
                span=self._link.settings.lease,
            )
        )
        if isinstance(leased, BaseException):
            raise leased
        if leased is None:
            now = await self.get(run_id)
            if now.state is RunState.LEASED:
                raise AlreadyLeased(run_id, now.holder or "")
            raise UnknownId("ready run", run_id)
        async with held(self._link, leased) as run:
            yield run

    async def ready(self, queue: str, agents: tuple[str, ...] = (), *, limit: int = 50) -> tuple[str, ...]:
        """Ids of ready runs of a queue, in each partition best first: by priority, then by age."""
        check_name("queue", queue)
        check_range("limit", limit, 1, MOST_LISTED)
        found: list[str] = []
        await self._link.open()
        for p in self._link.space.all():
            counts = await self._link.fetch(reads.read_counts(p))
            pools = [
                pool for pool in counts.pools if pool.queue == queue and (not agents or pool.agent in agents)
            ]
            found += [run for run, _ in await self._link.fetch(runs.ready_runs(p, pools, limit))][:limit]
        return tuple(found[:limit])

    async def _partition(self, run_id: str) -> Partition:
        check_id("run_id", run_id)
        await self._link.open()
        p = self._link.space.of_id(run_id) if bits_of(run_id) is not None else None
        if p is None:
            raise UnknownId("run", run_id)
        return p

    async def _full(self, p: Partition, run_id: str) -> RunAddress:
        a = await self._link.fetch(address.read_run_address(p, run_id))
        ids = [one.interrupt for one in a.interrupts]
        return address.with_interrupts(a, await self._link.fetch(address.read_addresses(p, ids)))


@contextlib.asynccontextmanager
async def held(link: Link, leased: runs.Leased) -> AsyncIterator[Run[Any]]:
    """A leased run, renewed for the length of the block, and given back at its end if nothing else ended the lease."""
    run: Run[Any] = Run(link, leased)

    def lost() -> None:
        run.is_held = False

    with Renewer(
        link.source, link.settings, link.rendering, options=link.options, observer=link.observer
    ) as renewer:
        run._renewal = renewer.add(leased, lost)  # noqa: SLF001 - the same house
        try:
            await run.load()
            with run._span():  # noqa: SLF001 - the same house
                yield run
        except Stopped:
            if run.is_held:
                with contextlib.suppress(BrokerError):
                    await run.release()
            raise
        except BaseException as error:
            if run.is_paused or (
                isinstance(error, Paused) and not run.is_held
            ):  # no error: it waits for somebody
                return
            await run.failed(error)
            if isinstance(error, AttemptOver):
                raise run._cause(error) from None  # noqa: SLF001 - the same house
            raise
        if run._fault is not None and not run.is_paused:  # noqa: SLF001 - the same house
            await run.failed(run._fault)  # noqa: SLF001
        elif run.is_held:
            await run.release()


class Dead:
    """The dead letters: runs that failed too often. They take answers; only an operator wakes them."""

    def __init__(self, link: Link, of: Runs) -> None:
        self._link = link
        self._runs = of

    async def list(self, *, limit: int = 50) -> tuple[RunRecord, ...]:
        """Dead runs with their errors, the first to die first. What cannot be read of one is among its errors."""
        check_range("limit", limit, 1, MOST_LISTED)
        await self._link.open()
        found: list[RunRecord] = []
        for p in self._link.space.all():
            for row in await self._link.fetch(reads.page(p, "dead", None, limit - len(found))):
                try:
                    record = await self._link.fetch(reads.read_run(p, row.id, lenient=True))
                except Corrupt as broken:
                    log.error("dead run %s: %s", row.id, broken)  # noqa: TRY400 - a sentence, not a traceback
                    continue
                if record is not None:
                    found.append(record)
            if len(found) >= limit:
                break
        return tuple(found)

    async def requeue(
        self, run_id: str, *, fence: int | None = None, queue: str | None = None, by: Principal | None = None
    ) -> Outcome:
        """Sends a dead run back, to `queue` where one is named. It is about one death (`fence`). Safe to repeat."""
        who = by or self._link.by
        p = await self._runs._partition(run_id)  # noqa: SLF001 - the same house
        if queue is not None:
            moved = await self._runs.move(run_id, queue, by=by)
            if not moved.ok:
                return moved

        async def make() -> Command[Outcome]:
            a = await self._link.fetch(address.read_run_address(p, run_id))
            about = a.fence if fence is None else fence
            return runs.requeue(
                p, address.at_fence(a, about), op=f"rq-{run_id}-{about}", by=who.to_bytes() if who else b""
            )

        return await self._link.chase(make)


class Queue:
    """One worker pool's queue."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self.name: str = check_name("queue", name)

    async def counts(self) -> dict[Pool, int]:
        """How many runs are ready, by agent and build."""
        await self._link.open()
        found: dict[Pool, int] = {}
        for p in self._link.space.all():
            pools = [
                pool
                for pool in (await self._link.fetch(reads.read_counts(p))).pools
                if pool.queue == self.name
            ]
            for pool, count in zip(pools, await self._link.fetch(reads.read_ready(p, pools)), strict=True):
                found[pool] = found.get(pool, 0) + count
        return found

    async def lease(
        self, agents: tuple[str, ...], *, limit: int = 1, build: str = "", holder: str = "lease"
    ) -> tuple[Run[Any], ...]:
        """Up to `limit` ready runs of these agents, leased to the caller, who renews nothing: finish within a lease."""
        check_range("limit", limit, 1, MOST_AT_ONCE)
        await self._link.open()
        pools = [
            Pool(self.name, check_name("agent", agent), b)
            for agent in agents
            for b in dict.fromkeys((build, ""))
        ]
        runs = [Run[Any](self._link, one) for one in await Leases(self._link).take(pools, limit, holder)]
        taken: list[Run[Any]] = []
        unread = [run for run in runs if not run._is_ready()]  # noqa: SLF001 - the same house
        needs = await self._link.fetch(read_all([run._needs() for run in unread]))  # noqa: SLF001
        read = dict(zip([run.id for run in unread], needs, strict=True))
        for run in runs:
            found = read.get(run.id)
            try:
                if isinstance(found, BaseException):
                    raise found
                await run.load(found)
            except Corrupt as broken:
                await run.failed(broken)
                continue
            taken.append(run)
        return tuple(taken)
