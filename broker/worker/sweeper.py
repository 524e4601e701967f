"""The sweeper: makes true by itself what no call makes true, and everything it does may be done twice.

Expiry, lost leases, ended back-offs, bells that no longer reach anybody, retention, trimming. One process sweeps a
partition at a time, by a lease that expires; two at once do no harm.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from .._async.link import Link
from ..core.ids import new_nonce
from ..core.models import Audience, OnExpiry
from ..core.settings import Settings
from ..core.states import Mode
from ..errors import BrokerError, Unavailable
from ..store import prepare
from ..store.commands import address, reads, sweep, wakes
from ..store.commands.address import Address, RunAddress
from ..store.commands.sweep import Due, Right, Stale
from ..store.commands.values import Command, Read, micros
from ..store.keys import Partition, Pool

log: logging.Logger = logging.getLogger("broker")

T = TypeVar("T")

BATCH = 32
MOST_KEYS = 400
BELLS_AT_ONCE = 16
BELL_AGE = timedelta(hours=1)
BELL_COUNT = 10_000
BACKLOG = 1000
FORGET_AFTER_LEASES = 10
MOST_PASSED_OVER = 5
"""How many periods may pass without a whole sweep of a partition where nothing happens."""
SLEEP = timedelta(seconds=30)
"""How long a sweeper sleeps that nobody stirs; as long may a dead one keep its right while nothing happens."""
MOST_SLEPT = timedelta(minutes=10)
"""How long it may sleep, again and again, without a whole sweep."""
STAND_SECONDS = 3.0
MOST_ASKING = 10
"""From so many workers on, each asks for the right to sweep as seldom as if they were no more."""
TIDY_PERIODS = 10
"""How often doorbells are trimmed, workers forgotten and the namespace's settings looked at."""


class _Seen:
    """What the last whole sweep of a partition found: while nothing has changed since, there is nothing to do."""

    def __init__(self) -> None:
        self.tidy_at = 0.0
        self.until_next: float | None = None
        """In how many seconds the first timer fires; None where there is none, or it is due."""
        self.is_quiet = False
        """Whether nothing was there to do the last time, and nothing will be soon."""
        self._counter = -1
        self._at = 0
        self._idle = False

    def is_idle(self, right: Right, most: timedelta) -> bool:
        """Whether a sweep may be passed over. Never for long: what moves without the counter is found all the same."""
        due = right.next is not None and right.next <= right.now
        late = right.now - self._at >= micros(most)
        return self._idle and right.counter == self._counter and not (right.unseen or due or late)

    def wake(self) -> None:
        """Something may have happened, whatever the counter says: a server that lost its data counts anew."""
        self.is_quiet = self._idle = False

    def note(self, right: Right, *, is_idle: bool) -> None:
        """Remembers what a whole sweep found."""
        self._counter, self._at, self._idle = right.counter, right.now, is_idle


class Sweeper:
    """Sweeps every partition of a namespace, again and again: `await Sweeper(broker).run()`."""

    def __init__(self, broker: Any, *, name: str | None = None) -> None:
        self._link: Link = broker._link  # noqa: SLF001 - the same house
        self.name: str = name or f"sweeper-{new_nonce()}"
        self._tops: dict[tuple[Partition, Pool], str] = {}
        self.workers = 1
        """How many workers there are, as far as is known: each asks the more seldom."""
        self._seen: dict[Partition, _Seen] = {}
        """The partitions that this one may sweep."""
        self._next: dict[Partition, float] = {}
        """When a partition is to be looked at, or its sweeper to be asked for."""
        self._told = False
        self._full = False
        """Whether a partition had more to do than one sweep does."""

    @property
    def _right(self) -> str:
        """The name of the right to sweep: a process that may write verdicts takes it from one that may not."""
        return f"{'d' if self._link.can_decide else 'w'} {self.name}"

    @property
    def _later(self) -> timedelta:
        """When to look again at what only another process may do."""
        return self._link.settings.sweep_every * 3

    async def run(self) -> None:
        """Sweeps until cancelled. A lost server only makes it late."""
        await self._link.open()
        try:
            while True:
                for p in self._link.space.all():
                    if monotonic() >= self._next.get(p, 0.0):
                        await self._survive(self._look_after(p))
                if self._seen and all(seen.is_quiet for seen in self._seen.values()):
                    await self._survive(self._sleep())
                else:
                    await asyncio.sleep(max(0.0, min(self._next.values()) - monotonic()))
        finally:
            await self._give_up()

    async def _survive(self, work: Awaitable[None]) -> None:
        """Some work, a fault of which must not end the sweeping of all."""
        try:
            await work
        except Unavailable as error:
            log.warning("sweeper: %s", error.reason)
        except BrokerError as error:
            log.error("sweeper: %s", error)  # noqa: TRY400 - a sentence, not a traceback
        except Exception as error:  # noqa: BLE001 - as said
            log.error("sweeper: %s; going on", type(error).__name__)  # noqa: TRY400 - as above

    async def _look_after(self, p: Partition) -> None:
        """One sweep, and when the next one is due: after a period at most, so that what is lost rings within two."""
        period = self._link.settings.sweep_every.total_seconds()
        self._next[p] = monotonic() + period * (0.5 + random.random() / 2)  # noqa: S311 - jitter
        self._full = False
        if await self.sweep(p):
            if self._full:
                self._next[p] = monotonic() + period * 0.02
            elif (until := self._seen[p].until_next) is not None:
                self._next[p] = min(self._next[p], monotonic() + until)
        else:
            # Its right ends in three periods where it has died; many ask, so somebody asks soon.
            others = min(max(self.workers, 1), MOST_ASKING)
            self._next[p] = monotonic() + period * 3 * (1 + random.random() * others)  # noqa: S311 - jitter

    async def _sleep(self) -> None:
        """Until somebody stirs, a timer fires, or others have to be asked; every while it says that it is there."""
        mine = dict(self._seen)
        async with self._link.announcements.listen(*[p.key("stir") for p in mine]) as bell:
            await bell.wait(STAND_SECONDS)
            until = min((at for p, at in self._next.items() if p not in mine), default=math.inf)
            while (left := until - monotonic()) > 0:
                for p, seen in mine.items():
                    seen.is_quiet = False
                    right = await self._ask(p, SLEEP)
                    if right is None or not seen.is_idle(right, MOST_SLEPT) or not self._is_quiet(right):
                        break
                    seen.is_quiet = True
                    left = min(left, seen.until_next or math.inf)
                else:
                    if not await bell.wait(min(left, SLEEP.total_seconds())):
                        continue
                break
        for p, seen in mine.items():
            seen.wake()
            self._next[p] = 0.0

    def _is_quiet(self, right: Right) -> bool:
        """Whether nobody holds a lease and nothing is due soon: then a sweeper that dies asleep is missed by nobody."""
        return right.next is None or right.next - right.now > micros(self._link.settings.lease)

    async def _ask(self, p: Partition, more: timedelta = timedelta()) -> Right | None:
        """The right to sweep a partition for three periods and more; None where another process has it."""
        right = await self._link.run(
            sweep.sweep_right(p, self._right, self._link.settings.sweep_every * 3 + more)
        )
        if right is None:
            self._seen.pop(p, None)
        else:
            seen = self._seen.setdefault(p, _Seen())
            seen.until_next = right.until_next
            if not right.held:
                seen.wake()
        return right

    async def sweep(self, p: Partition) -> bool:
        """Sweeps one partition once; False where another process has the right to. Bounded: the rest is next time."""
        settings = self._link.settings
        right = await self._ask(p)
        if right is None:
            return False
        seen = self._seen[p]
        if seen.is_idle(right, settings.sweep_every * MOST_PASSED_OVER):
            seen.is_quiet = self._is_quiet(right)
            return True
        seen.is_quiet = False
        tidies = monotonic() >= seen.tidy_at
        if tidies and p == self._link.space.partition(0):
            await self._link.keep_namespace()
        due = await self._link.fetch(
            sweep.read_due(p, right.now, settings.sweep_every, BATCH, list(Audience))
        )
        self._full = self._full or max(len(due.interrupts) + len(due.runs), len(due.stale)) >= BATCH
        await self._link.fetch(sweep.forget(due.strays))
        await self._expire(p, due)
        await self._reclaim(p, due, settings)
        for audience, ids in due.unseen.items():
            await self._ring(p, audience, ids)
        await self._ring_ready(p, due)
        await self._collect(p, due)
        if tidies:
            await self._trim(p, due)
            seen.tidy_at = monotonic() + (settings.sweep_every * TIDY_PERIODS).total_seconds()
        tops = any(self._tops.get((p, pool)) for pool in due.pools)
        seen.note(right, is_idle=not tops)
        return True

    async def _give_up(self) -> None:
        try:
            async with asyncio.timeout(1):
                for p in self._link.space.all():
                    await self._link.run(sweep.sweep_right(p, self._right, timedelta()))
        except (BrokerError, TimeoutError):
            pass

    async def _all(self, command: Command[T]) -> list[T]:
        """What the items came to; a record that moved or cannot be read is for the next time, and is said."""
        if not command.items:
            return []
        results = await self._link.run_all(command)
        for one in results:
            if isinstance(one, BrokerError):
                log.warning("sweeper: %s", one)
        return [one for one in results if not isinstance(one, BaseException)]

    async def _expire(self, p: Partition, due: Due) -> None:
        found = await self._complete(p, due.interrupts)
        if not self._link.can_decide:
            # A default answer is a verdict: only a process that may write those gives it. Others look past it.
            left = [f"i {a.interrupt}" for a in found if a.expiry == OnExpiry.DEFAULT]
            await self._link.fetch(sweep.postpone(p, "timers", left, due.now, self._later))
            found = [a for a in found if a.expiry != OnExpiry.DEFAULT]
        plain = [a for a in found if a.mode != Mode.FIRST]
        await self._all(sweep.expire(p, plain, decider=self._link.can_decide))
        for a in found:
            if a.mode == Mode.FIRST:
                runs = await self._link.fetch(address.read_run_addresses(p, [a.run]))
                others = [
                    one.interrupt for run in runs for one in run.interrupts if one.interrupt != a.interrupt
                ]
                full = prepare.with_siblings(a, await self._link.fetch(address.read_addresses(p, others)))
                await self._all(sweep.expire(p, [full], decider=self._link.can_decide))

    async def _complete(self, p: Partition, ids: Sequence[str], audience: str = "") -> list[Address]:
        """The address of each, in order; one whose record is gone has that of nothing, and leaves its list."""
        found = {a.interrupt: a for a in await self._link.fetch(address.read_addresses(p, ids))}
        return [found.get(one) or Address.gone(one)._replace(audience=audience) for one in ids]

    async def _reclaim(self, p: Partition, due: Due, settings: Settings) -> None:
        found = {a.run: a for a in await self._link.fetch(address.read_run_addresses(p, due.runs))}
        runs = [found.get(one) or RunAddress(one, "", Pool("", "")) for one in due.runs]
        rows = [(a.run, a.session, a.pool) for a in runs]
        # The first lease that is lost is most often its worker's end, and no fault of the run.
        pauses = [
            prepare.back_off(a.tries, settings, random.random()) if a.tries > 1 else timedelta()  # noqa: S311 - jitter
            for a in runs
        ]
        await self._all(sweep.reclaim(p, rows, pauses))

    async def _ring(self, p: Partition, audience: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        group = await self._link.fetch(sweep.read_group(p, audience))
        if group is None or group.behind > BACKLOG:
            return  # nobody reads, or those who read are behind: their entries will come
        bells = await self._link.fetch(sweep.read_bells(p, ids))
        lost = [one for one, bell in zip(ids, bells, strict=True) if not group.will_reach(bell)]
        found = await self._complete(p, lost, audience)
        await self._all(sweep.ring(p, found, audience, self._link.settings.sweep_every))

    async def _ring_ready(self, p: Partition, due: Due) -> None:
        """Wakes workers where the best ready run is the same as a period ago: its bell reached nobody."""
        tops = await self._link.fetch(sweep.read_tops(p, due.pools))
        waiting = [pool for pool, top in tops.items() if top and self._tops.get((p, pool)) == top]
        self._tops.update({(p, pool): top for pool, top in tops.items()})
        await self._all(wakes.ring_ready(p, waiting, BELLS_AT_ONCE, everybody=True))

    async def _collect(self, p: Partition, due: Due) -> None:
        members = due.stale
        if not self._link.can_decide:
            # Deleting a verdict is writing one. A process with a decider's or operator's credential collects.
            left = [one for one in members if not one.startswith("h")]
            await self._link.fetch(sweep.postpone(p, "retention", left, due.now, self._later))
            members = tuple(one for one in members if one.startswith("h"))
            if not self._told:
                log.info("settled records are left to a process that may delete verdicts")
                self._told = True
        some: list[Stale] = []
        for one in await self._stale(p, members):
            some.append(one)
            if sum(len(each.keys) for each in some) > MOST_KEYS:
                await self._all(sweep.collect(p, some))
                some = []
        await self._all(sweep.collect(p, some))

    async def _stale(self, p: Partition, members: Sequence[str]) -> list[Stale]:
        """What deleting each member needs to know; two reads for all of them."""
        ids = [one[2:] for one in members if one.startswith("r")]
        runs = {a.run: a for a in await self._link.fetch(address.read_run_addresses(p, ids))}
        of_runs = [one.interrupt for run in runs.values() for one in run.interrupts]
        of_members = [one[2:] for one in members if one.startswith("i")]
        found = await self._link.fetch(address.read_addresses(p, [*of_members, *of_runs]))
        known = {a.interrupt: a for a in found}
        stale: list[Stale] = []
        for member in members:
            name = member[2:]
            match member[0]:
                case "h":
                    stale.append(sweep.stale_history(p, member))
                case "e":
                    stale.append(sweep.stale_early(p, member))
                case "i":
                    stale.append(sweep.stale_interrupt(p, member, known.get(name) or Address.gone(name)))
                case _:
                    run = runs.get(name)
                    its = (
                        [known[one.interrupt] for one in run.interrupts if one.interrupt in known]
                        if run
                        else []
                    )
                    stale.append(sweep.stale_run(p, member, run.session if run else "", its))
        return stale

    async def _trim(self, p: Partition, due: Due) -> None:
        read: Read[Any] = sweep.trim(p, due, BELL_AGE, BELL_COUNT)
        dangling = await self._link.fetch(read)
        await self._link.fetch(sweep.acknowledge(p, dangling))
        if p == self._link.space.partition(0):
            workers = await self._link.fetch(reads.read_workers(p))
            limit = due.now - FORGET_AFTER_LEASES * round(
                self._link.settings.lease.total_seconds() * 1_000_000
            )
            for name, (at, _) in workers.items():
                if at < limit:
                    await self._link.run(sweep.register(p, name, b""))
