"""Which invocation of a subagent owns which interrupt of a run, how each closes by that, and where they disagree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...core.dispositions import SubagentOutcome
from ...core.limits import JSON
from .rules import Rule

Broken = tuple[Rule, str]
"""A rule that an event breaks, and how."""


class InvocationState(StrEnum):
    """Where an invocation is."""

    ACTIVE = "active"
    FINISHED = "finished"
    SUSPENDED = "suspended"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """Its run ended in an error before it closed."""


GOES_ON = frozenset({InvocationState.SUSPENDED, InvocationState.ABANDONED})
"""What a later run may continue under the same id."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One invocation of a subagent: `id` is its `subagentRunId`, `parent` who started it (None: the main agent).

    `name` is None for one that is known from tags alone. `outcome` is what it closed with. `waits_for` are the open
    interrupts of a suspended one: its own, and those of the invocations below it.
    """

    id: str
    name: str | None = None
    parent: str | None = None
    state: InvocationState = InvocationState.ACTIVE
    outcome: SubagentOutcome | None = None
    waits_for: frozenset[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether it was announced and has not closed."""
        return self.name is not None and self.state is InvocationState.ACTIVE


def subagent_outcomes(
    parents: Mapping[str, str | None], owners: Mapping[str, str | None]
) -> dict[str, SubagentOutcome]:
    """How each invocation of a run closes, from who started whom and who owns which open interrupt.

    `parents`: each invocation's parent, None for the main agent. `owners`: each open interrupt's invocation, None for
    the main agent. An owner is suspended with its ids, in their order; whoever has an owner below it is suspended
    without ids; every other one is a success. An owner that `parents` does not name is in the result too.
    """
    owned: dict[str, list[str]] = {}
    for interrupt, owner in owners.items():
        if owner is not None:
            owned.setdefault(owner, []).append(interrupt)
    above = {one for owner in owned for one in ancestors(owner, parents)}
    return {
        one: SubagentOutcome.suspended(owned.get(one))
        if one in owned or one in above
        else SubagentOutcome.success()
        for one in {**dict.fromkeys(parents), **dict.fromkeys(owned)}
    }


def owners_of(event: Mapping[str, JSON]) -> dict[str, str | None]:
    """The interrupts of a RUN_FINISHED, each with the invocation it is tagged with, or None."""
    outcome = event.get("outcome")
    if not isinstance(outcome, dict) or outcome.get("type") != "interrupt":
        return {}
    return {one["id"]: one.get("subagentRunId") for one in outcome["interrupts"]}


def ancestors(one: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Who started an invocation, who started that one, and so on; a circle is gone round once."""
    seen = {one}
    above = parents.get(one)
    while above is not None and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above)


def disagreements(run: Mapping[str, Invocation], owners: Mapping[str, str | None]) -> Iterator[Broken]:
    """Where the interrupts that invocations name and the invocations that interrupts name do not agree."""
    for one in run.values():
        for interrupt in one.outcome.interrupt_ids if one.outcome else ():
            if interrupt not in owners:
                yield Rule.INTERRUPT_OWNER, f"{one.id} names {interrupt}, which is no interrupt of its run"
            elif owners[interrupt] != one.id:
                says = owners[interrupt] or "the main agent"
                yield Rule.INTERRUPT_OWNER, f"{one.id} names {interrupt}, which says it is {says}'s"
    for interrupt, owner in owners.items():
        closed = run[owner].outcome if owner is not None and owner in run else None
        if closed is not None and not closed.is_suspended:
            yield Rule.INTERRUPT_OWNER, f"{interrupt} says it is {owner}'s, which has finished"
        elif closed is not None and closed.ids is None:
            yield Rule.OWNER_UNNAMED, f"{owner} does not name its {interrupt}"
        elif closed is not None and interrupt not in closed.interrupt_ids:
            yield Rule.INTERRUPT_OWNER, f"{interrupt} says it is {owner}'s, which does not name it"
    yield from _idle(run, owners)


def _idle(run: Mapping[str, Invocation], owners: Mapping[str, str | None]) -> Iterator[Broken]:
    """Suspended invocations that nothing could wake: no interrupt of the run is theirs, or may be of one below them."""
    parents = {name: one.parent for name, one in run.items()}
    due = {
        one for owner in owners.values() if owner is not None for one in (owner, *ancestors(owner, parents))
    }
    if any(owner is None or owner not in run or run[owner].name is None for owner in owners.values()):
        return
    for one in run.values():
        names = one.outcome is not None and (not one.outcome.is_suspended or bool(one.outcome.interrupt_ids))
        if one.outcome is not None and not names and one.id not in due:
            yield Rule.WAITS_FOR_NOTHING, f"{one.id} is suspended, and waits for no interrupt of its run"
