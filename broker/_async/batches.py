"""Many pauses, answers or ends in as few calls as carry them, each with an outcome of its own.

Nothing is decided together: each is accepted or refused by itself, as if it had been sent alone. What a batch cannot
decide in one go (an early answer to look at, an address that moved) is made again alone.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, cast

from ..core.answers import Principal
from ..core.batches import AnswerTo, Suspension
from ..core.ids import bits_of, new_run_id
from ..core.limits import JSON, check_count, check_id, check_name
from ..core.models import InterruptState
from ..core.outcomes import Invalid, Outcome, Unknown
from ..core.states import Mode, RunState
from ..errors import BrokerError, Corrupt, InvalidInput, Refused, UnknownId
from ..store import prepare
from ..store.commands import answers, reads
from ..store.commands.pauses import Pause, Recheck, StaleAddress, suspend
from ..store.commands.reads import Asked
from ..store.commands.values import Command
from ..store.keys import Partition, Pool
from .inbox import Inbox
from .link import Link
from .run import Run
from .run import suspend as suspend_one

MOST = 1000
"""How many a batch may hold."""


def _placed(came: Outcome | BaseException) -> Outcome | Corrupt:
    """An outcome, or what is wrong with the record of one item; raises what concerns them all."""
    if isinstance(came, BaseException) and not isinstance(came, Corrupt):
        raise came
    return came


def _invalid(fault: InvalidInput) -> Invalid:
    return Invalid(field=fault.field, problem=fault.problem, allowed=fault.allowed)


class Batch:
    """Pauses, answers and ends by the hundred. Each item has an outcome of its own, in the order they were given."""

    def __init__(self, link: Link, inbox: Inbox) -> None:
        self._link = link
        self._inbox = inbox

    async def suspend(
        self, pauses: Sequence[Suspension], *, by: Principal | None = None
    ) -> list[Outcome | Corrupt]:
        """What became of each pause; see `AsyncBroker.suspend`. What does not fit is `Invalid` in its place.

        One whose records cannot be read is `Corrupt` in its place. Safe to repeat where each has a `key`. Raises
        `Unavailable` where it is not known what became of all of them, and `OutOfMemory`; those that have happened by
        then stay.
        """
        check_count("pauses", len(pauses), MOST)
        link, until = self._link, await self._link.not_after()
        with link.span("broker.suspend", pauses=len(pauses)) as traceparent:
            made = [_pause(link, one, by or link.by, until, traceparent) for one in pauses]
            commands = [suspend(p, pause) for p, pause in made if not isinstance(pause, Invalid)]
            found = iter(await link.run_many(commands))
            return [
                pause if isinstance(pause, Invalid) else await self._suspended(p, pause, next(found))
                for p, pause in made
            ]

    async def _suspended(
        self, p: Partition, pause: Pause, came: Outcome | BaseException
    ) -> Outcome | Corrupt:
        if isinstance(came, Recheck | StaleAddress):
            try:
                return await suspend_one(self._link, p, pause, ())
            except Refused as refused:
                return cast("Outcome", refused.outcome)
        return _placed(came)

    async def answer(
        self, answers: Sequence[AnswerTo], *, by: Principal | None = None
    ) -> list[Outcome | Corrupt]:
        """What became of each answer; see `Inbox.answer`. What does not fit is `Invalid` in its place.

        One whose record cannot be read is `Corrupt` in its place. Safe to repeat. Raises where
        nobody is named, and what the server cannot do for any of them.
        """
        check_count("answers", len(answers), MOST)
        link, who = self._link, by or self._link.by
        if who is None:
            raise InvalidInput("by", "is missing", "a Principal, here or where the broker is made")
        await link.open()
        questions = await _questions(link, [one.interrupt_id for one in answers])
        commands: dict[int, Command[Outcome]] = {}
        for place, one in enumerate(answers):
            known = questions.get(one.interrupt_id)
            if known is not None and (command := _answering(link, known, one, who)) is not None:
                commands[place] = command
        came = dict(zip(commands, await link.run_many([*commands.values()]), strict=True))
        return [await self._answered(one, came.get(place), who) for place, one in enumerate(answers)]

    async def _answered(
        self, one: AnswerTo, came: Outcome | BaseException | None, who: Principal
    ) -> Outcome | Corrupt:
        if came is not None and not isinstance(came, BaseException):
            return came
        if isinstance(came, BaseException) and not isinstance(came, StaleAddress):
            return _placed(came)
        try:
            return await self._inbox.answer(one.interrupt_id, one.answer, by=who, seen=one.seen, op=one.op)
        except InvalidInput as fault:
            return _invalid(fault)
        except UnknownId:
            return Unknown(id=one.interrupt_id)
        except Corrupt as fault:
            return fault

    async def finish(
        self, results: Sequence[tuple[Run[Any], JSON]], *, by: Principal | None = None
    ) -> list[RunState | BrokerError]:
        """The state of each run after its end, or the error that says why it could not be ended; see `Run.finish`."""
        check_count("results", len(results), MOST)
        made: list[Command[str] | BrokerError] = []
        for run, result in results:
            try:
                made.append(run._finishing(result, by))  # noqa: SLF001 - the same house
            except BrokerError as fault:
                made.append(fault)
        with ExitStack() as ending:
            for run, _ in results:
                ending.enter_context(run._ending())  # noqa: SLF001
            found = iter(await self._link.run_many([one for one in made if isinstance(one, Command)]))
        states: list[RunState | BrokerError] = []
        for (run, _), one in zip(results, made, strict=True):
            if isinstance(one, BrokerError):
                states.append(one)
                continue
            try:
                states.append(await run._finished(one, next(found)))  # noqa: SLF001 - the same house
            except BrokerError as fault:
                states.append(fault)
        return states


def _answering(link: Link, known: Asked, one: AnswerTo, who: Principal) -> Command[Outcome] | None:
    """The command of an answer; None for one that is better made alone."""
    at, record = known
    p = link.space.of_id(one.interrupt_id)
    if p is None or at.mode == Mode.FIRST:
        return None
    try:
        fitting = prepare.said(record, one.answer, who, op=one.op, seen=one.seen)
    except InvalidInput:
        return None
    return None if isinstance(fitting, Invalid) else answers.answer(p, [(at, fitting)])


def _pause(
    link: Link, one: Suspension, by: Principal | None, until: int, traceparent: str | None
) -> tuple[Partition, Pause | Invalid]:
    p = link.space.partition(0)
    try:
        build = check_name("build", one.build) if one.build else ""
        pool = Pool(check_name("queue", one.queue), check_name("agent", one.agent), build)
        p = link.space.of_session(check_id("session", one.session))
        if one.key is not None:
            check_id("key", one.key)
        run = new_run_id(one.session, namespace=link.namespace, key=one.key)
        data = prepare.input_bytes(one.input, None, link.settings, protocol_id=one.protocol_id)
        place = prepare.place(run, one.session, pool, data=data, by=by)
        state = one.state or InterruptState()
        return p, prepare.pause(
            link.namespace,
            place,
            1,
            state,
            one.interrupts,
            link.settings,
            mode=one.mode,
            not_after=until,
            traceparent=traceparent,
        )
    except InvalidInput as fault:
        return p, _invalid(fault)


async def _questions(link: Link, ids: Sequence[str]) -> dict[str, Asked]:
    found: dict[str, Asked] = {}
    ours = [one for one in dict.fromkeys(ids) if bits_of(one) is not None]
    for one in ours:
        known = link.asked.take(one)
        if known is not None:
            found[one] = known
    for p in link.space.all():
        mine = [one for one in ours if one not in found and link.space.of_id(one) == p]
        for asked in await link.fetch(reads.read_all_asked(p, mine)):
            if asked is not None:
                found[asked[1].id] = asked
    return found
