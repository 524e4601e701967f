"""The inbox: what waits for an answer, and answering it."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import timedelta

from ..core.answers import Answer, Principal
from ..core.ids import bits_of, new_nonce
from ..core.limits import check_id, check_name, check_range
from ..core.models import Audience
from ..core.outcomes import Invalid, Outcome
from ..core.pages import Filters, Page
from ..core.records import InterruptRecord, Resolution
from ..core.states import Mode, Settlement
from ..core.tokens import About
from ..errors import InvalidInput, UnknownId
from ..store import prepare
from ..store.commands import address, answers, reads
from ..store.commands.address import Address, early_identity
from ..store.commands.answers import CallAddress
from ..store.commands.values import Command
from ..store.delivery import Delivery
from ..store.keys import Partition, Pool
from .follow import Follower
from .link import Link
from .listing import open_page
from .waiting import wait_for

MOST_ON_A_PAGE = 500
MOST_PAUSES = 2**53
MOST_AT_ONCE = 64


class Inbox:
    """Open interrupts: look at them, follow them as they come, answer them."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, interrupt_id: str) -> InterruptRecord:
        """One interrupt, open or settled, with its question and how it ended. Raises `UnknownId`."""
        p = await self._partition("interrupt_id", interrupt_id)
        (slot,) = await self._link.fetch(reads.read_slots(p, [interrupt_id]))
        found = await self._link.fetch(reads.read_interrupts(p, [slot]))
        if not found:
            raise UnknownId("interrupt", interrupt_id)
        return found[0]

    async def wait(self, interrupt_id: str, timeout: float | None = None) -> Resolution:
        """How an interrupt ended; raises `WaitTimeout` after so many seconds.

        Nothing is lost by waiting late: what is settled already is given at once. Waiting costs no polling.
        """
        p = await self._partition("interrupt_id", interrupt_id)

        async def look() -> Resolution | None:
            record = await self.get(interrupt_id)
            return record.resolution if record.state is not Settlement.OPEN else None

        return await wait_for(self._link, p, interrupt_id, timeout, look)

    async def answer(
        self,
        interrupt_id: str,
        answer: Answer,
        *,
        by: Principal | None = None,
        seen: str | None = None,
        op: str | None = None,
    ) -> Outcome:
        """What became of an answer to one interrupt: the first one counts, the others are told who was first.

        `seen` is the digest of the question the answerer was shown: with it, an answer to anything else is refused.
        Safe to repeat: without an `op`, the same answer by the same party is the same operation. Kind, edits and the
        response schema are held against the question; what does not fit comes back as `Invalid`, nothing changed.
        """
        p = await self._partition("interrupt_id", interrupt_id)
        who = self._who(by)

        async def make() -> Command[Outcome] | Invalid:
            known = self._link.asked.take(interrupt_id)
            if known is not None:
                fitting = prepare.said(known[1], answer, who, op=op, seen=seen)
                if not isinstance(fitting, Invalid):
                    return answers.answer(p, [(await self._with_siblings(p, known[0]), fitting)])
            asked = await self._link.fetch(reads.read_asked(p, interrupt_id))
            if asked is None:
                said = prepare.verdict_of(None, interrupt_id, answer, who, op=op, seen=seen)
                return answers.answer_unknown(p, interrupt_id, said, self._link.settings.retry_window)
            at, record = asked
            fitting = prepare.said(record, answer, who, op=op, seen=seen)
            if isinstance(fitting, Invalid):
                if record.state is Settlement.OPEN:
                    return fitting
                fitting = prepare.verdict_of(record.interrupt, interrupt_id, answer, who, op=op, seen=seen)
            return answers.answer(p, [(await self._with_siblings(p, at), fitting)])

        return await self._link.chase(make)

    async def answer_call(
        self,
        session_id: str,
        call_id: str,
        answer: Answer,
        *,
        run_id: str | None = None,
        seq: int | None = None,
        by: Principal | None = None,
        seen: str | None = None,
        op: str | None = None,
    ) -> Outcome:
        """What became of an answer that names its question by the call id, with run and sequence where known.

        One that comes before its question is kept (`Parked`) and matched when the run suspends. Without a run it
        counts only while one question of the session has had that call id. Safe to repeat.
        """
        _check_call(session_id, call_id, run_id, seq)
        if op is not None:
            prepare.check_op(op)
        return await self._answer_call(session_id, call_id, answer, run_id, seq, by, seen, op)

    async def _answer_call(
        self, session_id: str, call_id: str, answer: Answer, run_id: str | None, seq: int | None,
        by: Principal | None, seen: str | None, op: str | None,
    ) -> Outcome:  # fmt: skip
        """The same; a run without a sequence means a call of its journal, whichever pause asks about it."""
        await self._link.open()
        p = self._link.space.of_session(session_id)
        who = self._who(by)
        until, longest = await self._link.not_after(), self._link.settings.keep_settled
        run, at = run_id or "", seq or 0
        # One op for what is asked and what is not yet: the repeat of an early answer is that answer.
        name = op or prepare.answer_op(f"{session_id}/{call_id}/{run}/{at}", answer, who, seen)
        slot = address.early_slot(session_id, run, at, call_id)

        async def make() -> Command[Outcome] | Invalid:
            asked, record = await self._call(p, CallAddress(session_id, call_id, slot, run, at))
            if record is not None and record.state is Settlement.OPEN:
                fitting = prepare.said(record, answer, who, op=name, seen=seen)
                if isinstance(fitting, Invalid):
                    return fitting
            else:
                identity = early_identity(session_id, call_id)
                interrupt = record.interrupt if record else None
                fitting = prepare.verdict_of(interrupt, identity, answer, who, op=name, seen=seen)
            return answers.answer_call(p, asked, fitting, not_after=until, longest=longest)

        return await self._link.chase(make)

    async def list(
        self,
        *,
        queue: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
        label: str | None = None,
        reviewer: str | None = None,
        older_than: timedelta | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        """One page of open interrupts, oldest first, and the cursor of the next one (None at the end).

        Queue, tool and kind are indexed; label, reviewer and age are found by looking, and `Page.looked_at` says at how
        many. Records that cannot be read are listed with their `problem`.
        """
        check_range("limit", limit, 1, MOST_ON_A_PAGE)
        for field, name in (("queue", queue), ("kind", kind)):
            if name is not None:
                check_name(field, name)
        filters = Filters(queue, check_id("tool", tool) if tool else None, kind, label, reviewer, older_than)
        await self._link.open()
        place, after = Page.parse(cursor, self._link.space.count)
        found: list[InterruptRecord] = []
        looked, most = 0, max(limit * 10, 500)
        while place < self._link.space.count:
            p = self._link.space.partition(place)
            rows = await open_page(self._link, p, filters.may_hold, after, min(limit, 100))
            records = await self._listed(p, [row.id for row in rows])
            now = self._link.server_now()
            for row in rows:
                looked, after = looked + 1, row.place
                record = records.get(row.id)
                if record is not None and filters.match(record, now):
                    found.append(record)
                if len(found) == limit or looked == most:
                    return Page(items=tuple(found), cursor=f"{place}.{after}", looked_at=looked)
            if not rows:
                place, after = place + 1, None
        return Page(items=tuple(found), cursor=None, looked_at=looked)

    async def _listed(self, p: Partition, ids: Sequence[str]) -> dict[str, InterruptRecord]:
        """The interrupts that are on a list. Whoever answers one of them next need not read it again."""
        found: dict[str, InterruptRecord] = {}
        settled: list[str] = []
        for asked in await self._link.fetch(reads.read_all_asked(p, ids)):
            if asked is not None and asked[1].state is Settlement.OPEN:
                self._link.asked.keep(asked)
                found[asked[1].id] = asked[1]
            elif asked is not None:
                settled.append(asked[1].id)
        if settled:  # in this moment: with how they ended
            slots = await self._link.fetch(reads.read_slots(p, settled))
            found |= {one.id: one for one in await self._link.fetch(reads.read_interrupts(p, slots))}
        return found

    def follow(
        self,
        group: str = Audience.APPROVALS,
        *,
        consumer: str | None = None,
        batch: int = 16,
        claim_after: timedelta | None = None,
    ) -> AsyncGenerator[Delivery, None]:
        """Open interrupts as they come, each to one reader of the group, at least once: loop over it.

        The body of the loop is the handler: an interrupt is acknowledged when the loop asks for the next one, decided
        or not. A reader that dies or leaves in the middle leaves its interrupt to another, after `claim_after` (default
        two leases). The groups `approvals` and `completions` get what is addressed to them; any other name gets all.
        """
        check_name("group", group)
        check_range("batch", batch, 1, MOST_AT_ONCE)
        if consumer is not None:
            check_id("consumer", consumer)
        follower = Follower(self._link, group, consumer or f"reader-{new_nonce()}", batch, claim_after)
        return follower.deliveries()

    # ------------------------------------------------------------------------------------------------------------

    def _who(self, by: Principal | None) -> Principal:
        who = by or self._link.by
        if who is None:
            raise InvalidInput("by", "is missing", "a Principal, here or where the broker is made")
        return who

    async def _partition(self, field: str, interrupt_id: str) -> Partition:
        check_id(field, interrupt_id)
        await self._link.open()
        p = self._link.space.of_id(interrupt_id) if bits_of(interrupt_id) is not None else None
        if p is None:
            raise UnknownId("interrupt", interrupt_id)
        return p

    async def _job(self, about: About) -> tuple[Partition, Address | None]:
        """Where the interrupt of a job lies, with what ends along with it; None where nobody waits for it (yet)."""
        session, call = about.session_id or "", about.call_id or ""
        ids: tuple[str, ...] = (about.interrupt_id or "",)
        if about.interrupt_id is not None:
            p = await self._partition("interrupt_id", about.interrupt_id)
        else:
            await self._link.open()
            p = self._link.space.of_session(session)
            ids = await self._link.fetch(address.read_aliases(p, session, call))
        for at in reversed(await self._link.fetch(address.read_addresses(p, ids))):
            if about.interrupt_id or (at.run == about.run_id and at.audience == Audience.COMPLETIONS):
                return p, await self._with_siblings(p, at)
        return p, None

    async def _call(self, p: Partition, a: CallAddress) -> tuple[CallAddress, InterruptRecord | None]:
        """The address of a call with all that its id has stood for, and the question that is meant, if it was asked."""
        ids = await self._link.fetch(address.read_aliases(p, a.session, a.call))
        known = await self._link.fetch(address.read_addresses(p, ids))
        record = await self._named(p, known, a.run or None, a.seq or None)
        pool = await self._pool(p, a.run) if a.run else None
        full = tuple([await self._with_siblings(p, one) for one in known])
        return replace(a, pool=pool, known=full), record

    async def _named(
        self, p: Partition, known: Sequence[Address], run_id: str | None, seq: int | None
    ) -> InterruptRecord | None:
        """The question a call id stands for: that of the run and sequence, or, unnamed, the last one."""
        for a in reversed(known):
            if run_id is None or a.run == run_id:
                asked = await self._link.fetch(reads.read_asked(p, a.interrupt))
                if asked is not None and (seq is None or asked[1].seq == seq):
                    return asked[1]
        return None

    async def _pool(self, p: Partition, run_id: str) -> Pool | None:
        try:
            return (await self._link.fetch(address.read_run_address(p, run_id))).pool
        except UnknownId:
            return None

    async def _with_siblings(self, p: Partition, a: Address) -> Address:
        """The address with those of its run's other interrupts, where one answer may end them all."""
        if a.mode != Mode.FIRST:
            return a
        run = await self._link.fetch(address.read_run_address(p, a.run))
        others: Sequence[str] = [one.interrupt for one in run.interrupts if one.interrupt != a.interrupt]
        return prepare.with_siblings(a, await self._link.fetch(address.read_addresses(p, others)))


def _check_call(session_id: str, call_id: str, run_id: str | None, seq: int | None) -> None:
    """What names a question by its call, checked. Raises `InvalidInput`."""
    check_id("session", session_id)
    check_id("call_id", call_id)
    if (run_id is None) != (seq is None):
        raise InvalidInput("seq", "and run_id are known together or not at all", "both or neither")
    if run_id is not None and seq is not None:
        check_id("run_id", run_id)
        check_range("seq", seq, 1, MOST_PAUSES)
