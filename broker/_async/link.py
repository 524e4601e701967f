"""One connection to one namespace: runs commands, repairs unknown scripts, repeats what may be repeated, keeps time.

Every operation names the version it is about, so a call whose reply was lost is simply sent again. How long is a
setting (`patience`); after it the caller is told that the outcome is not known.
"""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from ..core.answers import Principal
from ..core.limits import check_namespace
from ..core.outcomes import Outcome
from ..core.settings import Settings
from ..errors import BrokerError, NotPermitted, StaleLease, Unavailable
from ..store import namespace as ns
from ..store.commands.observed import Watch
from ..store.commands.values import Came, Command, Read, StaleAddress, header, joined
from ..store.connect import FAULTS, Gone, Later, NoScript, Options, meaning
from ..store.disk import Barrier, Disk, check_offered, told
from ..store.keys import Keyspace
from ..store.scripts import Rendering
from ..telemetry import UNTRACED, Observer, Tracer
from ._runtime import (
    Announcements,
    Client,
    Eventually,
    Home,
    Lock,
    Slots,
    announcements,
    deadline,
    make_client,
    monotonic,
    sleep,
    together,
)
from ._wire import Wire, at_once
from .confirm import Confirming
from .recent import Recent

log = logging.getLogger("broker")

T = TypeVar("T")

CALL_SECONDS = 5.0
CHASES = 8
WAITS_AT_ONCE = 10_000


class Link:
    """Everything a noun of the API needs to talk to the server. Opens itself at the first call."""

    def __init__(
        self, source: Any, namespace: str, settings: Settings | None, *, partitions: int | None = None,
        patience: float = 10.0, rendering: Rendering | None = None, by: Principal | None = None,
        options: Options | None = None, observer: Observer | None = None, create: bool = True,
    ) -> None:  # fmt: skip
        self.namespace: str = check_namespace(namespace)
        self.source = source
        self.options: Options = options or Options()
        self.patience = patience
        self.rendering: Rendering = rendering or Rendering()
        self.by = by
        self.observer = observer
        self.create = create
        self.can_decide: bool = True
        self._wanted = ns.Wanted(partitions, settings)
        self._home = Home()
        self._clock = (0, 0.0)
        self._forget()

    def _forget(self) -> None:
        self._wire: Wire | None = None
        self._announcements: Announcements | None = None
        self._lock = Lock()
        self._slots = Slots(at_once(self.options))
        self._answered = 0.0
        self._found: ns.Found | None = None
        self._header: tuple[int, ...] = ()
        self._confirming: Confirming | None = None
        self.asked: Recent = Recent()

    # Opening and closing ---------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings of the namespace, as the server keeps them; before opening, as asked for."""
        return self._found.settings if self._found else self._wanted.settings or Settings()

    @property
    def space(self) -> Keyspace:
        """The key names of the namespace."""
        if self._found is None:
            raise Unavailable("the connection is not open")
        return self._found.space

    @property
    def wire(self) -> Wire:
        """What commands go over."""
        if self._wire is None:
            self._wire = Wire(make_client(self.source, self.options, CALL_SECONDS), CALL_SECONDS)
        return self._wire

    @property
    def client(self) -> Client:
        """The client underneath, which opens connections of its own for what is sent through it."""
        return self.wire.client

    async def open(self) -> None:
        """Connects, checks the server and the namespace, creates the namespace where it is new. Safe to repeat."""
        if self._home.enter():
            self._forget()
        if self._found is not None:
            return
        async with self._lock:
            if self._found is not None:
                return
            try:
                self._found = await self._look()
            finally:
                if self._found is None:
                    await self.aclose()

    async def _look(self) -> ns.Found:
        """What the namespace is, on a server that is fit for it."""
        check_offered(self._wanted.settings.durability if self._wanted.settings else None)
        facts = await self._persist(lambda: self._send(ns.SERVER_FACTS, forgiving=True), writes=False)
        disk = ns.check_server(facts)
        found = await self._namespace(self._wanted, disk)
        self._header = header(found.settings)
        self.can_decide = await self._check_commands(found)
        await self._confirm(found, disk.barrier(found.durability, kept=True))
        self._clock = (await self._now(), monotonic())
        return found

    async def _confirm(self, found: ns.Found, barrier: Barrier) -> None:
        """Confirmed calls rest on this from now on. Raises `NotPermitted` where this user may not wait."""
        if barrier is not Barrier.NONE:
            tried = barrier.commands(found.space.partition(0), timedelta())
            await self._persist(lambda: self._send(tried), writes=False)
            within = found.settings.confirm_within
            self._confirming = Confirming(self.source, self.options, barrier, within, CALL_SECONDS)

    async def keep_namespace(self) -> None:
        """Writes the namespace's settings again where the server has lost them. Raises where they are others now."""
        if self._found is not None:
            await self._namespace(ns.Wanted(self._found.space.count, self._found.settings), None)

    async def _namespace(self, wanted: ns.Wanted, disk: Disk | None) -> ns.Found:
        # Read first: a server at its memory limit lets nobody create, and everybody go on.
        there = await self._persist(lambda: self._send((ns.read(self.namespace),)), writes=False, pick=0)
        fields = ns.fields(there)
        if not fields:
            if self._found is not None:
                log.warning("namespace %s is gone: the server lost data; making it again", self.namespace)
            chosen = ns.durability(wanted, disk)
            # Where nobody may create it, it reads as empty: nobody who only looked has settled its settings.
            fields = (
                await self._one(ns.create(self.namespace, wanted, chosen), Settings())
                if self.create
                else ns.defaults(wanted, chosen)
            )
        return ns.check_namespace(self.namespace, wanted, fields)

    async def _check_commands(self, found: ns.Found) -> bool:
        """Whether this user may write verdicts; raises `NotPermitted` where it may not even pause and resume."""
        refused = await self._one(ns.check_commands(found.space, decider=False), found.settings)
        if refused:
            raise NotPermitted(refused)
        try:
            return not await self._one(ns.check_commands(found.space, decider=True), found.settings)
        except NotPermitted:
            return False

    async def aclose(self) -> None:
        """Closes every connection. Safe to repeat; a closed one opens again at the next call."""
        announcements, wire, confirming = self._announcements, self._wire, self._confirming
        self._announcements = self._wire = self._found = self._confirming = None
        if confirming is not None:
            await confirming.aclose()
        if announcements is not None:
            await announcements.aclose()
        if wire is not None:
            await wire.aclose()
        self._home.leave()

    @property
    def announcements(self) -> Announcements:
        """What is announced on channels."""
        if self._announcements is None:
            roomy = replace(self.options, max_connections=WAITS_AT_ONCE)
            self._announcements = announcements(make_client(self.source, roomy, CALL_SECONDS))
        return self._announcements

    # Time ------------------------------------------------------------------------------------------------------

    async def _now(self) -> int:
        seconds, micro = await self._persist(lambda: self._send((("TIME",),)), writes=False, pick=0)
        return int(seconds) * 1_000_000 + int(micro)

    def server_now(self) -> int:
        """The server's time in microseconds: its last reply, plus what has passed here since."""
        base, at = self._clock
        return base + int((monotonic() - at) * 1_000_000)

    async def now(self) -> int:
        """As `server_now`, after the server was asked again where that is long ago."""
        await self.open()
        if monotonic() - self._clock[1] > 60:  # noqa: PLR2004 - a minute of drift is harmless
            self._clock = (await self._now(), monotonic())
        return self.server_now()

    async def not_after(self, window: timedelta | None = None) -> int:
        """Until when a creating request may be repeated, in microseconds of the server's time."""
        return await self.now() + int((window or self.settings.retry_window).total_seconds() * 1_000_000)

    # Calls -----------------------------------------------------------------------------------------------------

    async def run(self, command: Command[T]) -> T:
        """What the one item of a command came to; raises its fault."""
        (result,) = await self.run_all(command)
        if isinstance(result, BaseException):
            raise result
        return result

    async def run_all(self, command: Command[T]) -> list[T | BaseException]:
        """What each item came to, a fault in the place of its item."""
        await self.open()
        return await self._many(command, self._header)

    async def run_many(self, commands: Sequence[Command[T]]) -> list[T | BaseException]:
        """What each of several commands came to, in as few script calls as carry them; a fault in its place."""
        await self.open()
        results: list[Any] = [None] * len(commands)
        parts = list(joined(commands))
        found = await together([partial(self.run_all, one) for one, _ in parts])
        for (_, places), came in zip(parts, found, strict=True):
            told = [came] * len(places) if isinstance(came, BaseException) else came
            for place, one in zip(places, told, strict=True):
                results[place] = one
        return results

    async def fetch(self, read: Read[T]) -> T:
        """What some plain reads say together."""
        await self.open()
        if not read.commands:
            return read.decode([])
        wire = self.wire  # that of now: one that is closed meanwhile is not opened again
        send = partial(self._send, read.commands, forgiving=read.forgiving, wire=wire)
        return read.decode(await self._persist(send, writes=False))

    async def chase(self, make: Callable[[], Eventually[Command[Outcome] | Outcome]]) -> Outcome:
        """Runs a command whose address may have gone out of date meanwhile: then it is made anew and sent again.

        What `make` gives instead of a command is the answer already.
        """
        for _ in range(CHASES):
            made = await make()
            if not isinstance(made, Command):
                return made
            try:
                outcome: Outcome = await self.run(made)
            except StaleAddress:
                continue
            return outcome
        raise Unavailable("the record kept moving to other keys")

    async def _one(self, command: Command[T], settings: Settings) -> T:
        (result,) = await self._many(command, header(settings))
        if isinstance(result, BaseException):
            raise result
        return result

    def span(self, name: str, traceparents: Sequence[str] = (), /, **facts: str | int) -> Any:
        """A block of work as one span, where somebody traces; see `Tracer.span`."""
        observer = self.observer
        return observer.span(name, traceparents, **facts) if isinstance(observer, Tracer) else UNTRACED

    async def _many(self, command: Command[T], head: tuple[int, ...]) -> list[T | BaseException]:
        call = command.call(self.rendering.script(command.script, oom=command.oom), head)
        confirming, wire, sent = self._confirming if command.confirm else None, self.wire, 0

        async def send() -> Came:
            nonlocal sent
            sent += 1
            how = confirming.send if confirming else wire.run
            try:
                return await how(call)
            except FAULTS as error:
                if not isinstance(meaning(error), NoScript):
                    raise
            return await how(call, whole=True)

        with Watch(self.observer, command) as watch:
            try:
                came: Came = await self._persist(send, writes=True, confirming=confirming)
                results = command.read(came.reply, came.after)
                for one in results:
                    if isinstance(one, StaleLease):
                        one.repeated = (sent > 1 or came.again) and came.reached
                return watch.saw(self._told(results, came) if confirming else results)
            except NotPermitted as refused:
                reason = f"{command.script}: {refused.reason}"
            raise NotPermitted(reason)

    def _told(self, results: list[Any], came: Came) -> list[Any]:
        """What callers of a confirmed call are told, with the class that was reached."""
        assert self._found is not None  # noqa: S101 - there is no confirming before
        return [told(one, self._found.durability, reached=came.reached) for one in results]

    async def _send(
        self, commands: tuple[tuple[Any, ...], ...], *, forgiving: bool = False, wire: Wire | None = None
    ) -> list[Any]:
        replies = await (wire or self.wire).read(commands)
        for reply in replies:
            if isinstance(reply, Exception) and not (
                forgiving and not isinstance(meaning(reply), Gone | Later)
            ):
                raise reply
        return replies

    async def _persist(
        self, call: Callable[[], Eventually[Any]], *, writes: bool, pick: int | None = None,
        confirming: Confirming | None = None,
    ) -> Any:  # fmt: skip
        # A confirmed call may wait for the one before it too; those that are not must not wait for them.
        slots = confirming.slots if confirming else self._slots
        await self._take_slot(slots)
        ends, unsure, attempt = monotonic() + self.patience, False, 0
        while True:
            fault: BaseException
            try:
                if confirming:
                    async with deadline(confirming.seconds * 2):
                        reply = await call()
                else:
                    reply = await call()  # the wire keeps the time
                self._answered = monotonic()
                return reply if pick is None else reply[pick]
            except Unavailable as closed:
                closed.unsure = closed.unsure or unsure
                raise
            except FAULTS as error:
                fault = meaning(error)
            finally:
                slots.give()
            if not isinstance(fault, Gone | Later):
                raise fault if isinstance(fault, BrokerError) else Unavailable(str(fault), unsure=unsure)
            unsure = unsure or (writes and isinstance(fault, Gone))
            attempt += 1
            pause = min(0.02 * 2**attempt, 1.0) * (0.5 + random.random() / 2)  # noqa: S311 - jitter
            if monotonic() + pause > ends:
                raise Unavailable(str(fault) or type(fault).__name__, unsure=unsure)
            await sleep(pause)
            await self._take_slot(slots)

    async def _take_slot(self, slots: Slots) -> None:
        """Waits until a connection is free for a call: for as long as it takes while others get their answers."""
        began = monotonic()
        await slots.take()
        if began - self._answered > 0 and monotonic() - began > self.patience:
            slots.give()
            raise Unavailable("the calls before this one get no answer")
