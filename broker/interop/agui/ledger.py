"""Who works for whom in an AG-UI thread: the invocations of subagents, how each ended, and what each waits for.

A producer keeps a ledger for a thread, tells it what happens, and gets the events to send; a consumer, or a process
that takes a thread over, lets it observe the thread's events. Its rules are those of the specification's page on
subagents. State is not kept here: it belongs to the run, and a tag on it only says where it came from.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...core.dispositions import SubagentEnd, SubagentOutcome
from ...core.limits import JSON
from ...errors import InvalidInput
from .events import faults, stripped
from .owners import (
    GOES_ON,
    Broken,
    Invocation,
    InvocationState,
    ancestors,
    disagreements,
    owners_of,
    subagent_outcomes,
)
from .rules import Level, Rule
from .shapes import Interrupt


class SubagentLedger:
    """The invocations of one thread of AG-UI, run after run. `events` are those that were sent before.

    `started`, `failed`, `finished` and `run_finished` take what a producer does and give the events to send; each
    raises `InvalidInput` where its event would break a rule, and then changes nothing. `observe` takes events that
    somebody has sent, in order, and gives the rules that they break. The two mix. Everything is kept in memory: a
    process that goes on with a thread gives the thread's events.
    """

    def __init__(self, events: Iterable[Mapping[str, JSON]] = ()) -> None:
        self._run: dict[str, Invocation] = {}
        self._before: dict[str, Invocation] = {}
        self._owners: dict[str, str | None] = {}
        for event in events:
            self.observe(event)

    @property
    def invocations(self) -> Mapping[str, Invocation]:
        """The invocations of the run that is going on, else of the last one, by id, in order of appearance."""
        return dict(self._run)

    @property
    def waiting(self) -> Mapping[str, Invocation]:
        """The suspended invocations of the thread whose interrupts are not all settled, by id."""
        known = {**self._before, **self._run}
        return {one.id: one for one in known.values() if one.waits_for}

    def outcomes(self) -> dict[str, SubagentOutcome]:
        """How each invocation of the run has closed, or would close now. Those that failed have none."""
        derived = subagent_outcomes(self._parents(), self._owners)
        return {
            name: one.outcome or derived[name]
            for name, one in self._run.items()
            if one.state in {InvocationState.ACTIVE, InvocationState.FINISHED, InvocationState.SUSPENDED}
        }

    def run_started(self) -> None:
        """A run of the thread starts: nothing is open in it. Suspended invocations may be continued."""
        self._apply({"type": "RUN_STARTED"})

    def started(
        self,
        subagent_run_id: str,
        name: str,
        *,
        parent: str | None = None,
        description: str | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
    ) -> dict[str, JSON]:
        """The SUBAGENT_STARTED of a new invocation, or of one that an earlier run suspended and this one continues.

        `parent` is the invocation that started it, `tool_call_id` and `message_id` the call and the message that did.
        """
        return self._send({
            "type": "SUBAGENT_STARTED", "subagentRunId": subagent_run_id, "name": name, "description": description,
            "parentSubagentRunId": parent, "parentToolCallId": tool_call_id, "parentMessageId": message_id,
        })  # fmt: skip

    def failed(self, subagent_run_id: str, message: str, *, code: str | None = None) -> dict[str, JSON]:
        """The SUBAGENT_ERROR of an invocation that failed. The run goes on."""
        return self._send(
            {"type": "SUBAGENT_ERROR", "subagentRunId": subagent_run_id, "message": message, "code": code}
        )

    def raised(self, interrupt: Interrupt) -> None:
        """An interrupt that the run will end with; its `subagent_run_id` says whose it is. Repeating is safe.

        Raises `InvalidInput` where its invocation has closed, or where the same id is another's.
        """
        owner, known = interrupt.subagent_run_id, self._owners.get(interrupt.id, interrupt.subagent_run_id)
        if known != owner:
            raise InvalidInput("subagentRunId", f"is not that of {interrupt.id}", str(known))
        if interrupt.id in self._owners:
            return
        if owner is not None:
            one = self._run.setdefault(owner, Invocation(owner))
            if one.state is not InvocationState.ACTIVE:
                raise InvalidInput(
                    "subagentRunId", f"names an invocation that is {one.state}", "an active one"
                )
        self._owners[interrupt.id] = owner

    def finished(self, subagent_run_id: str, *, result: JSON = None) -> dict[str, JSON]:
        """The SUBAGENT_FINISHED of an invocation: suspended where it or one below it has raised an interrupt."""
        outcome = subagent_outcomes(self._parents(), self._owners).get(subagent_run_id)
        told = outcome.to_wire() if outcome is not None and outcome.is_suspended else None
        return self._send(
            {"type": "SUBAGENT_FINISHED", "subagentRunId": subagent_run_id, "result": result, "outcome": told}
        )

    def run_finished(self, interrupts: Iterable[Interrupt] = ()) -> list[dict[str, JSON]]:
        """The events that close what is still open before the run's RUN_FINISHED, the innermost first.

        `interrupts` are those of the run's outcome. Afterwards the run is over: who is suspended, waits.
        """
        before = dict(self._run), dict(self._owners)
        try:
            for interrupt in interrupts:
                self.raised(interrupt)
        except InvalidInput:
            self._run, self._owners = before
            raise
        events = [self.finished(name) for name in reversed(self._run) if self._run[name].is_active]
        self._close(self._owners)
        return events

    def settle(self, interrupt_ids: Iterable[str]) -> list[str]:
        """Interrupts were answered or abandoned: gives the invocations that wait no more. Repeating is safe."""
        settled = frozenset(interrupt_ids)
        before = list(self.waiting)
        for known in (self._before, self._run):
            for name, one in known.items():
                known[name] = replace(one, waits_for=one.waits_for - settled)
        return [name for name in before if name not in self.waiting]

    def observe(self, event: Mapping[str, JSON]) -> list[Broken]:
        """An event of the thread that somebody has sent: gives the rules of subagents that it breaks, and goes on.

        Raises `InvalidInput` for an event that is malformed in itself, and then changes nothing.
        """
        sent = dict(event)
        found = list(faults(sent, 0))
        for one in found:
            if one.rule.level is Level.ERROR:
                raise InvalidInput(one.field, one.text, one.rule.says)
        return self.follow(stripped(sent, found))

    def follow(self, event: Mapping[str, JSON], *, is_whole: bool = True) -> list[Broken]:
        """The same for an event whose shape is known to be good; `is_whole` is False where its outcome was left out."""
        broken = list(self._broken(event, is_whole=is_whole))
        self._apply(event, is_whole=is_whole)
        return broken

    def _send(self, event: dict[str, JSON]) -> dict[str, JSON]:
        for rule, text in self._broken(event):
            raise InvalidInput("subagentRunId", text, rule.says)
        sent = {name: value for name, value in event.items() if value is not None}
        self._apply(sent)
        return sent

    def _broken(self, event: Mapping[str, JSON], *, is_whole: bool = True) -> Iterator[Broken]:
        kind, name = event.get("type"), event.get("subagentRunId")
        if kind == "RUN_FINISHED":
            for one in self._run.values():
                if one.is_active:
                    yield Rule.SUBAGENT_LEFT_OPEN, f"{one.id} is active when its run finishes"
            if is_whole:
                yield from disagreements(self._run, owners_of(event))
        elif not isinstance(name, str):
            return
        elif kind == "SUBAGENT_STARTED":
            yield from self._wrong_start(name, event.get("parentSubagentRunId"))
        elif kind in {"SUBAGENT_FINISHED", "SUBAGENT_ERROR"} and not self._is_active(name):
            yield Rule.SUBAGENT_NOT_ACTIVE, f"{name} is not active"

    def _wrong_start(self, name: str, parent: JSON) -> Iterator[Broken]:
        here, before = self._run.get(name), self._before.get(name)
        if here is not None and here.name is None:
            yield Rule.SUBAGENT_LATE, f"{name} is announced after an event of its own"
        elif here is not None:
            rule = Rule.SUBAGENT_ACTIVE if here.is_active else Rule.SUBAGENT_REUSED
            yield rule, f"{name} was started in this run before, and is {here.state}"
        elif before is not None and before.name is not None and before.state not in GOES_ON:
            yield Rule.SUBAGENT_REUSED, f"{name} was {before.state} in an earlier run"
        if parent is not None and (parent not in self._run or self._run[parent].name is None):
            yield Rule.SUBAGENT_PARENT, f"{name} names the parent {parent}, which was not announced"

    def _is_active(self, name: str) -> bool:
        return name in self._run and self._run[name].is_active

    def _apply(self, event: Mapping[str, JSON], *, is_whole: bool = True) -> None:
        kind, name = event.get("type"), event.get("subagentRunId")
        if kind == "RUN_STARTED":
            self._before |= self._run
            self._run, self._owners = {}, {}
            self.settle(_answered(event))
        elif kind == "RUN_FINISHED":
            self._close(owners_of(event))
        elif kind == "RUN_ERROR":
            for one in self._run.values():
                self._end(one.id, InvocationState.ABANDONED)
        elif not isinstance(name, str):
            return
        elif kind == "SUBAGENT_STARTED":
            title, parent = event.get("name"), event.get("parentSubagentRunId")
            self._run[name] = Invocation(name, title if isinstance(title, str) else "", parent)
        elif kind == "SUBAGENT_ERROR":
            self._end(name, InvocationState.FAILED)
        elif kind == "SUBAGENT_FINISHED":
            outcome = _ending(event)
            state = InvocationState.SUSPENDED if outcome.is_suspended else InvocationState.FINISHED
            self._end(name, state, outcome if is_whole else None)
        else:
            self._run.setdefault(name, Invocation(name))

    def _end(self, name: str, state: InvocationState, outcome: SubagentOutcome | None = None) -> None:
        one = self._run.get(name)
        if one is not None and one.state is InvocationState.ACTIVE:
            self._run[name] = replace(one, state=state, outcome=outcome)

    def _close(self, owners: Mapping[str, str | None]) -> None:
        """The run is over: what was only tagged closes by who owns what, and the suspended know what they wait for."""
        self._owners = dict(owners)
        for owner in owners.values():
            if owner is not None:
                self._run.setdefault(owner, Invocation(owner))
        parents = self._parents()
        for name, outcome in subagent_outcomes(parents, owners).items():
            state = InvocationState.SUSPENDED if outcome.is_suspended else InvocationState.FINISHED
            self._end(name, state, outcome)
        for name, one in self._run.items():
            if one.state is InvocationState.SUSPENDED:
                named = set(one.outcome.interrupt_ids if one.outcome else ())
                below = {
                    at
                    for at, owner in owners.items()
                    if owner and name in {owner, *ancestors(owner, parents)}
                }
                self._run[name] = replace(one, waits_for=frozenset(named | below or owners))

    def _parents(self) -> dict[str, str | None]:
        return {name: one.parent for name, one in self._run.items()}


def _answered(event: Mapping[str, JSON]) -> list[str]:
    asked = event.get("input") or {}
    return [entry["interruptId"] for entry in asked.get("resume", ())]


def _ending(event: Mapping[str, JSON]) -> SubagentOutcome:
    """The outcome of a shape that was checked; what else it holds is not ours to limit, as `of_event` would."""
    outcome = event.get("outcome") or {}
    is_suspended = outcome.get("type") == SubagentEnd.SUSPENDED
    return (
        SubagentOutcome.suspended(outcome.get("interruptIds")) if is_suspended else SubagentOutcome.success()
    )
