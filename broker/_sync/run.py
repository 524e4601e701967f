# Generated from broker/_async/run.py by tests/tools/unasync.py (make sync): do not edit.
"""A leased run in the hands of the one worker that may go on with it."""

import contextlib
import dataclasses
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from ..core.answers import Principal
from ..core.entries import codec_of
from ..core.limits import JSON, check_name
from ..core.models import InputRecord, Interrupt, InterruptState, ResultRecord
from ..core.outcomes import Accepted, NotDurable, Outcome, Replayed
from ..core.records import InterruptRecord, Resolution, protocol_runs
from ..core.states import Mode, RunState
from ..core.toolcalls import ToolCall
from ..core.tools import Tool, registry
from ..errors import (
    AttemptOver,
    BrokerError,
    BuildMismatch,
    CallFailed,
    Corrupt,
    InvalidInput,
    JournalFull,
    JournalMismatch,
    Paused,
    Refused,
    RosterMismatch,
    StaleLease,
    UnknownId,
)
from ..renewer import Renewal
from ..store import prepare
from ..store.commands import address, entries, inputs, pauses, reads, runs
from ..store.commands.address import Address, RunAddress
from ..store.commands.runs import Leased
from ..store.commands.values import Command, Read
from ._runtime import Guard
from .journal import Journal
from .link import Link

log = logging.getLogger("broker")

T = TypeVar("T")

_MAKING = Guard()


class Run(Generic[T]):
    """What a worker holds: the run's input, the state it was frozen in, and the answers it goes on from.

    Exactly one of `suspend`, `finish`, `release` and `fail` ends the lease. After that, and after the lease was lost,
    writes raise `StaleLease` and change nothing. `fence` grows with every lease: a tool that can do harm should refuse
    a lower number than it has seen.
    """

    def __init__(self, link: Link, leased: Leased) -> None:
        self._link = link
        self._leased = leased
        self._ahead: reads.Resume | None = leased.ahead
        self._old: tuple[Address, ...] = ()
        self._renewal: Renewal | None = None
        self.id: str = leased.token.run
        self.session_id: str = leased.text("session")
        self.agent: str = leased.text("agent")
        self.build: str | None = leased.text("build") or None
        self.queue: str = leased.text("queue")
        self.seq: int = int(leased.text("seq") or 0)
        self.fence: int = leased.token.fence
        self.attempt: int = int(leased.text("tries") or 1)
        self.input: Any = None
        self.metadata: dict[str, JSON] = {}
        self.protocol_ids: tuple[str, ...] = ()
        self.state: InterruptState | None = None
        self.interrupts: tuple[InterruptRecord, ...] = ()
        self.cut: int = int(leased.text("cut") or 0)
        self.checkpointed: JSON = None
        self.is_held: bool = True
        self._fault: BaseException | None = None
        self._unconfirmed = ""
        self._result: bytes | None = None
        self._made: Journal | None = None

    def __repr__(self) -> str:
        return f"Run(id={self.id!r}, agent={self.agent!r}, seq={self.seq}, fence={self.fence}, attempt={self.attempt})"

    def _needs(self) -> Read[reads.Resume]:
        """What it goes on from."""
        ids, shown = self._leased.text("ids").split(), set(self._leased.text("shown").split())
        return reads.read_resume(self._leased.partition, self.id, ids, shown)

    def _is_ready(self) -> bool:
        """Whether what it goes on from was read when it was leased."""
        ids, shown = self._leased.text("ids").split(), set(self._leased.text("shown").split())
        return self._ahead is not None and self._ahead.fits(ids, shown)

    def _span(self) -> Any:
        """This attempt as a span: it goes on with the trace of the questions it was waiting for."""
        came = [one.interrupt.traceparent for one in self.interrupts if one.interrupt.traceparent]
        return self._link.span(
            f"broker.run {self.agent}", came, run=self.id, session=self.session_id, attempt=self.attempt,
            pauses=self.seq,
        )  # fmt: skip

    def load(self, found: reads.Resume | None = None) -> None:
        """Reads what the run goes on from; done before it is handed over. Raises `Corrupt` for what cannot be read.

        `found` is that, where the caller has read it.
        """
        link, p = self._link, self._leased.partition
        first: tuple[str, ...] = ()
        if found is None:
            found = self._ahead if self._is_ready() else None
        if found is None:
            found = link.fetch(self._needs())
        self._ahead = None
        shown = set(self._leased.text("shown").split())
        if found.input:
            record = InputRecord.from_bytes(found.input, key=p.key("input", self.id))
            self.input, self.metadata, first = record.input, record.metadata, record.protocol_ids
        if found.state:
            self.state = reads.frozen(found.state, p.key("state", self.id), self._leased.text("suspended"))
        if self.cut:
            self.checkpointed = link.fetch(entries.read_checkpoint(p, self.id))
        self._old = tuple(at for at, _ in found.asked)
        early = [(a.interrupt, a.verdict) for a, one in found.asked if one and a.verdict not in ("", one.id)]
        elsewhere = {one.id: one for one in link.fetch(reads.read_interrupts(p, early))} if early else {}
        self.interrupts = tuple(elsewhere.get(one.id, one) for _, one in found.asked if one is not None)
        self.protocol_ids = protocol_runs(first, self.interrupts)
        for one in self.interrupts:
            shown.discard(one.id)
            if one.problem is not None or one.resolution is None:
                fault = one.problem or "it was handed out and is not settled"
                raise Corrupt(p.key("interrupt", one.id), fault)
        for missing in shown:
            raise Corrupt(p.key("interrupt", missing), "it is gone, and its run goes on from it")

    # The journal -----------------------------------------------------------------------------------------------

    @property
    def _journal(self) -> Journal:
        # Made when it is first needed: it refers to its run, and what refers to itself waits for the garbage collector.
        with _MAKING:
            if self._made is None:
                self._made = Journal(self)
            return self._made

    @property
    def is_paused(self) -> bool:
        """Whether this attempt has paused: whatever its handler does now, it is entered again when it is answered."""
        return isinstance(self._fault, Paused)

    def step(self, function: Callable[..., Any], /, *args: Any, key: str | None = None, **kwargs: Any) -> Any:
        """What `function(*args, **kwargs)` returned: it runs once, is recorded, and comes back at every replay.

        For whatever must not repeat, such as asking a model. The result has the type its annotation says (a pydantic
        model, a dataclass ...), else plain JSON. Only what is returned counts: the function has lists and maps of its
        own, so that a handler sees the same at each entry, whatever is changed in them. Steps are known by their place
        in the handler; those whose order depends on time need a `key`. One that raises is not recorded: the attempt
        fails and it is made again, so what is to be caught is caught inside the function.
        """
        return self._journal.step(function, args, kwargs, key, codec_of(function))

    def calls(
        self,
        tool_calls: Sequence[Any],
        tools: Mapping[str, Any] | Sequence[Any],
        *,
        context: Sequence[JSON] = (),
    ) -> list[dict[str, JSON]]:
        """The tool messages that answer a model's tool calls, in their order.

        Inline ones run at the same time and are recorded. Gated and long-running ones are asked about together: then
        this raises `Paused`, and the handler is entered again when they are answered. A rejected, expired or failed
        call comes back as a message that says so. Calls are known by their ids. `context` is the conversation that
        the people who answer see.
        """
        asked = [ToolCall.parse(one) for one in tool_calls]
        results = self._journal.calls(asked, registry(tools), context)
        return [one.message(result) for one, result in zip(asked, results, strict=True)]

    def call(
        self, tool: Any, arguments: dict[str, JSON] | None = None, *, call_id: str | None = None,
        context: Sequence[JSON] = (),
    ) -> JSON:  # fmt: skip
        """What one call of a tool returned; raises `CallFailed` where it was rejected, expired or failed.

        As `calls`, for code that calls tools itself; any number may be made at the same time (`gather`, `TaskGroup`).
        """
        known = Tool.of(tool)
        asked = ToolCall.of(call_id, known.name, arguments or {})
        (result,) = self._journal.calls([asked], {known.name: known}, context)
        if result.failure is not None:
            raise CallFailed(known.name, result.failure.kind, result.failure.text)
        return result.value

    def checkpoint(self, state: JSON) -> None:
        """Puts `state` in the place of the journal so far: from now on the handler finds it in `run.checkpointed`.

        For long runs, between calls. The handler must go on from there when it is entered again.
        """
        self._journal.cut(state)

    def said(self) -> tuple[JSON, ...]:
        """The input that came after the run was started (`Runs.say`), oldest first, up to now.

        It only grows. A handler with a journal reads it in a step: `run.step(run.said)`.
        """
        return self._link.fetch(inputs.read_said(self._leased.partition, self.id))

    # The last pause --------------------------------------------------------------------------------------------

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """How the interrupts of the last pause ended, in the order they were asked; empty before the first pause."""
        return tuple(one.resolution for one in self.interrupts if one.resolution is not None)

    def resolution(self, call_id: str) -> Resolution:
        """How the question about one call ended; raises `UnknownId` where none was asked in the last pause."""
        for one in self.interrupts:
            if one.interrupt.call_id == call_id and one.resolution is not None:
                return one.resolution
        raise UnknownId("answered call", call_id)

    def suspend(
        self,
        *interrupts: Interrupt,
        state: InterruptState | None = None,
        mode: Mode = Mode.ALL,
        keep: Sequence[str] = (),
        build: str | None = None,
    ) -> Accepted | Replayed:
        """Stores the pause and asks its questions, all or nothing, and ends the lease: return from the handler now.

        Without interrupts, the pending calls of `state` become approvals. In mode `each` the ids in `keep` stay open.
        With a `build` only workers that declare it go on with the run from now on.
        Safe to repeat. Raises `InvalidInput`, `StaleLease`, and `Refused` with the outcome for everything else; after
        `NotDurable` the run has paused, and a repeat waits again.
        """
        self._check()
        return self._suspend(*interrupts, state=state, mode=mode, keep=keep, build=build)

    def _suspend(
        self,
        *interrupts: Interrupt,
        state: InterruptState | None,
        mode: Mode = Mode.ALL,
        keep: Sequence[str] = (),
        build: str | None = None,
    ) -> Accepted | Replayed:
        pool = self._leased.pool
        if build is not None:
            pool = dataclasses.replace(pool, build=check_name("build", build))
        place = runs.Place(self.id, self.session_id, pool, int(self._leased.text("priority") or 0), b"")
        with (
            self._link.span("broker.suspend", run=self.id, session=self.session_id) as traceparent,
            self._ending(),
        ):
            pause = prepare.pause(
                self._link.namespace, place, self.seq + 1, state or InterruptState(), interrupts, self._link.settings,
                mode=mode, token=self._leased.token, keep=keep, protocol_ids=self.protocol_ids, traceparent=traceparent,
            )  # fmt: skip
            try:
                outcome = suspend(self._link, self._leased.partition, pause, self._old)
            except Refused as refused:
                if isinstance(refused.outcome, NotDurable):
                    self._end()
                raise
            self._end()
        return outcome

    def finish(self, result: JSON = None, *, by: Principal | None = None) -> RunState:
        """Closes the run with its result. Safe to repeat. In mode `each` a run with more to do goes on instead.

        Raises `StaleLease`, and `Refused` with `NotDurable`: then it is closed, and a repeat waits again.
        """
        command = self._finishing(result, by)
        with self._ending():
            return self._finished(command, (self._link.run_all(command))[0])

    def _finishing(self, result: JSON, by: Principal | None) -> Command[str]:
        self._check()
        if not self.is_held and self._unconfirmed != "finish":
            raise StaleLease(self.id)
        data = ResultRecord(result=result).to_bytes(most=self._link.settings.limits.record_bytes)
        if self._result not in (None, data):
            raise InvalidInput(
                "result", "differs from the one that this run was finished with", "the same result"
            )
        self._result = data
        who = by or self._link.by
        return runs.finish(self._leased, by=who.to_bytes() if who else b"", result=data)

    def _finished(self, command: Command[str], came: str | BaseException) -> RunState:
        # Handed on (mode each): a run that was taken back instead still has its tries.
        state = self._wrote(
            command, came, lambda a: a.tries == 0 and a.state in (RunState.READY, RunState.WAITING)
        )
        return RunState(state)

    def release(self) -> None:
        """Gives the run back unharmed, for another worker; counts as no attempt."""
        self._write(runs.release(self._leased), lambda _: True)

    def fail(self, kind: str, text: str = "", *, final: bool = False) -> RunState:
        """Ends this attempt as failed: the run comes back after a while, or is dead after too many (or if `final`)."""
        pause = prepare.back_off(self.attempt, self._link.settings, random.random())  # noqa: S311 - jitter
        said = [part.encode(errors="backslashreplace").decode() for part in (kind, text[:1000])]
        command = runs.fail(self._leased, pause=pause, final=final, kind=said[0], text=said[1])
        return RunState(self._write(command, lambda a: a.state in (RunState.READY, RunState.DEAD)))

    def failed(self, error: BaseException) -> None:
        """Ends this attempt for an error that was raised. Nothing, where the lease has ended or cannot be ended."""
        cause = self._cause(error)
        if self.is_held:
            known = isinstance(
                cause, Corrupt | JournalMismatch | JournalFull | RosterMismatch | BuildMismatch
            )
            kind = cause.code if isinstance(cause, BrokerError) and known else type(cause).__name__
            with contextlib.suppress(BrokerError):
                self.fail(kind, str(cause), final=isinstance(cause, JournalMismatch | JournalFull))

    def _cause(self, error: BaseException) -> BaseException:
        """What really ended the attempt, whatever its handler made of it."""
        if self._fault is not None:
            return self._fault
        return error.__cause__ or error if isinstance(error, AttemptOver) else error

    def _check(self) -> None:
        """Nothing, or what ended the attempt: what a handler makes of it afterwards does not count."""
        if isinstance(self._fault, Paused):
            raise Paused(self.id)
        if self._fault is not None:
            raise self._fault

    def _write(self, command: Command[str], done: Callable[[RunAddress], bool]) -> str:
        """The run's state after a call that ends the lease.

        Once it has ended, a repeat is told that the lease is stale. Where it was our own repeat, since the first reply
        was lost, `done` says by the run's record whether the first try did it.
        """
        if not self.is_held and self._unconfirmed != command.script:
            raise StaleLease(self.id)
        with self._ending():
            return self._wrote(command, (self._link.run_all(command))[0], done)

    def _wrote(
        self, command: Command[str], came: str | BaseException, done: Callable[[RunAddress], bool]
    ) -> str:
        if isinstance(came, StaleLease) and came.repeated:
            now = self._link.fetch(address.read_run_address(self._leased.partition, self.id))
            if now.fence != self.fence or not done(now):
                raise came
            came = now.state
        if isinstance(came, BaseException):
            if isinstance(came, Refused):  # it happened, and does not last for certain
                self._end(unconfirmed=command.script)
            raise came
        self._end()
        return came

    def _ending(self) -> contextlib.AbstractContextManager[None]:
        return self._renewal.ending() if self._renewal else contextlib.nullcontext()

    def _end(self, *, unconfirmed: str = "") -> None:
        self._unconfirmed = unconfirmed
        self.is_held = False
        if self._renewal is not None:
            self._renewal.remove()


def suspend(link: Link, p: Any, pause: pauses.Pause, old: tuple[Address, ...]) -> Accepted | Replayed:
    """Sends a pause; looks at early answers first where a response schema must hold for them."""
    for _ in range(8):
        try:
            outcome: Outcome = link.run(pauses.suspend(p, pauses.with_old(pause, old)))
        except pauses.Recheck:
            pause = _look_at_early(link, p, pause)
            continue
        except pauses.StaleAddress:
            old = link.fetch(address.read_addresses(p, [a.interrupt for a in old]))
            continue
        if isinstance(outcome, Accepted | Replayed):
            return outcome
        raise Refused(outcome)
    raise Corrupt(p.key("early", pause.place.session), "its answers keep changing")


def _look_at_early(link: Link, p: Any, pause: pauses.Pause) -> pauses.Pause:
    place = pause.place
    calls = [q.call for q in pause.questions if q.early != "*" and q.call]
    found = link.fetch(address.read_early(p, place.session, place.run, pause.seq, calls))
    verdicts = {slot: link.fetch(reads.read_verdict(p, slot)) for _, _, slot in found}
    return prepare.with_early(pause, [(call, mark, verdicts[slot]) for call, mark, slot in found])
