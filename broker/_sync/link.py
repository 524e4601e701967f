# Generated from broker/_async/link.py by tests/tools/unasync.py (make sync): do not edit.
"""One connection to one namespace: runs commands, repairs unknown scripts, repeats what may be repeated, keeps time.

Every operation names the version it is about, so a call whose reply was lost is simply sent again. How long is a
setting (`patience`); after it the caller is told that the outcome is not known.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from ..core.answers import Principal
from ..core.durability import Durability
from ..core.limits import check_namespace
from ..core.outcomes import Outcome
from ..core.settings import Settings
from ..errors import BrokerError, InvalidInput, NotPermitted, StaleLease, Unavailable
from ..store import namespace as ns
from ..store.commands.observed import Watch
from ..store.commands.values import Command, Read, StaleAddress
from ..store.connect import FAULTS, Gone, Later, NoScript, Options, meaning
from ..store.keys import Keyspace
from ..store.scripts import Rendering
from ..telemetry import Observer
from ._runtime import (
    Announcements,
    Client,
    Eventually,
    Home,
    Lock,
    Slots,
    deadline,
    make_client,
    monotonic,
    sleep,
)

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
        if settings is not None and settings.durability != Durability.memory():
            raise InvalidInput("settings.durability", "is not offered by this release", "memory")
        self._home = Home()
        self._clock = (0, 0.0)
        self._forget()

    def _forget(self) -> None:
        self._client: Client | None = None
        self._announcements: Announcements | None = None
        self._lock = Lock()
        self._slots = Slots(self.options.max_connections)
        self._answered = 0.0
        self._found: ns.Found | None = None

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
    def client(self) -> Client:
        """The client for commands."""
        if self._client is None:
            self._client = make_client(self.source, self.options, CALL_SECONDS)
        return self._client

    def open(self) -> None:
        """Connects, checks the server and the namespace, creates the namespace where it is new. Safe to repeat."""
        if self._home.enter():
            self._forget()
        if self._found is not None:
            return
        with self._lock:
            if self._found is not None:
                return
            try:
                self._found = self._look()
            finally:
                if self._found is None:
                    self.close()

    def _look(self) -> ns.Found:
        """What the namespace is, on a server that is fit for it."""
        facts = self._persist(lambda: self._send(ns.SERVER_FACTS, forgiving=True), writes=False)
        ns.check_server(facts)
        found = self._namespace(self._wanted)
        self.can_decide = self._check_commands(found)
        self._clock = (self._now(), monotonic())
        return found

    def keep_namespace(self) -> None:
        """Writes the namespace's settings again where the server has lost them. Raises where they are others now."""
        if self._found is not None:
            self._namespace(ns.Wanted(self._found.space.count, self._found.settings))

    def _namespace(self, wanted: ns.Wanted) -> ns.Found:
        # Read first: a server at its memory limit lets nobody create, and everybody go on.
        there = self._persist(lambda: self._send((ns.read(self.namespace),)), writes=False, pick=0)
        fields = ns.fields(there)
        if not fields and not self.create:
            fields = ns.defaults(
                wanted
            )  # it reads as empty, and nobody who only looked has settled its settings
        fields = fields or self._one(ns.create(self.namespace, wanted), Settings())
        return ns.check_namespace(self.namespace, wanted, fields)

    def _check_commands(self, found: ns.Found) -> bool:
        """Whether this user may write verdicts; raises `NotPermitted` where it may not even pause and resume."""
        refused = self._one(ns.check_commands(found.space, decider=False), found.settings)
        if refused:
            raise NotPermitted(refused)
        try:
            return not self._one(ns.check_commands(found.space, decider=True), found.settings)
        except NotPermitted:
            return False

    def close(self) -> None:
        """Closes every connection. Safe to repeat; a closed one opens again at the next call."""
        announcements, client = self._announcements, self._client
        self._announcements = self._client = self._found = None
        if announcements is not None:
            announcements.close()
        if client is not None:
            client.close()
        self._home.leave()

    @property
    def announcements(self) -> Announcements:
        """What is announced on channels."""
        if self._announcements is None:
            roomy = replace(self.options, max_connections=WAITS_AT_ONCE)
            self._announcements = Announcements(make_client(self.source, roomy, CALL_SECONDS))
        return self._announcements

    # Time ------------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        seconds, micro = self._persist(lambda: self._send((("TIME",),)), writes=False, pick=0)
        return int(seconds) * 1_000_000 + int(micro)

    def server_now(self) -> int:
        """The server's time in microseconds: its last reply, plus what has passed here since."""
        base, at = self._clock
        return base + int((monotonic() - at) * 1_000_000)

    def not_after(self, window: timedelta | None = None) -> int:
        """Until when a creating request may be repeated, in microseconds of the server's time."""
        self.open()
        if monotonic() - self._clock[1] > 60:  # noqa: PLR2004 - a minute of drift is harmless
            self._clock = (self._now(), monotonic())
        return self.server_now() + int((window or self.settings.retry_window).total_seconds() * 1_000_000)

    # Calls -----------------------------------------------------------------------------------------------------

    def run(self, command: Command[T]) -> T:
        """What the one item of a command came to; raises its fault."""
        (result,) = self.run_all(command)
        if isinstance(result, BaseException):
            raise result
        return result

    def run_all(self, command: Command[T]) -> list[T | BaseException]:
        """What each item came to, a fault in the place of its item."""
        self.open()
        return self._many(command, self.settings)

    def fetch(self, read: Read[T]) -> T:
        """What some plain reads say together."""
        self.open()
        if not read.commands:
            return read.decode([])
        return read.decode(
            self._persist(lambda: self._send(read.commands, forgiving=read.forgiving), writes=False)
        )

    def chase(self, make: Callable[[], Eventually[Command[Outcome] | Outcome]]) -> Outcome:
        """Runs a command whose address may have gone out of date meanwhile: then it is made anew and sent again.

        What `make` gives instead of a command is the answer already.
        """
        for _ in range(CHASES):
            made = make()
            if not isinstance(made, Command):
                return made
            try:
                return self.run(made)
            except StaleAddress:
                continue
        raise Unavailable("the record kept moving to other keys")

    def _one(self, command: Command[T], settings: Settings) -> T:
        (result,) = self._many(command, settings)
        if isinstance(result, BaseException):
            raise result
        return result

    def _many(self, command: Command[T], settings: Settings) -> list[T | BaseException]:
        script = self.rendering.script(command.script, oom=command.oom)
        keys, args, sent = command.keys(), command.args(settings), 0

        def call() -> Any:
            nonlocal sent
            sent += 1
            try:
                return self.client.execute_command("EVALSHA", script.sha, len(keys), *keys, *args)
            except FAULTS as error:
                if not isinstance(meaning(error), NoScript):
                    raise
            return self.client.execute_command("EVAL", script.text, len(keys), *keys, *args)

        with Watch(self.observer, command) as watch:
            try:
                results = command.read(self._persist(call, writes=True))
                for one in results:
                    if isinstance(one, StaleLease):
                        one.repeated = sent > 1
                return watch.saw(results)
            except NotPermitted as refused:
                reason = f"{command.script}: {refused.reason}"
            raise NotPermitted(reason)

    def _send(self, commands: tuple[tuple[Any, ...], ...], *, forgiving: bool = False) -> list[Any]:
        if len(commands) == 1 and not forgiving:
            return [self.client.execute_command(*commands[0])]
        pipe = self.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        replies = list(pipe.execute(raise_on_error=not forgiving))
        for reply in replies:
            if isinstance(reply, Exception) and isinstance(meaning(reply), Gone | Later):
                raise reply
        return replies

    def _persist(self, call: Callable[[], Eventually[Any]], *, writes: bool, pick: int | None = None) -> Any:
        self._take_slot()
        ends, unsure, attempt = monotonic() + self.patience, False, 0
        while True:
            fault: BaseException
            try:
                with deadline(CALL_SECONDS):
                    reply = call()
                self._answered = monotonic()
                return reply if pick is None else reply[pick]
            except FAULTS as error:
                fault = meaning(error)
            finally:
                self._slots.give()
            if not isinstance(fault, Gone | Later):
                raise fault if isinstance(fault, BrokerError) else Unavailable(str(fault), unsure=unsure)
            unsure = unsure or (writes and isinstance(fault, Gone))
            attempt += 1
            pause = min(0.02 * 2**attempt, 1.0) * (0.5 + random.random() / 2)  # noqa: S311 - jitter
            if monotonic() + pause > ends:
                raise Unavailable(str(fault) or type(fault).__name__, unsure=unsure)
            sleep(pause)
            self._take_slot()

    def _take_slot(self) -> None:
        """Waits until a connection is free for a call: for as long as it takes while others get their answers."""
        began = monotonic()
        self._slots.take()
        if began - self._answered > 0 and monotonic() - began > self.patience:
            self._slots.give()
            raise Unavailable("the calls before this one get no answer")
