"""The approver seam: which calls of a tool are asked about, by whom, and what becomes of what they say.

    approvals = Approvals(gate=EffectGate.DESTRUCTIVE_ONLY)
    sent = await approvals.call(run, wire_transfer, {"amount": 40}, tool_use_id="tu_81")

What is decided about a call is recorded in the run's journal before the call, so a crash, a pause and a gate that was
narrowed later change nothing of it. A call that awaits somebody external is a gated call of the broker's: it pauses the
run, runs by the verdict about exactly these arguments, and its result is recorded.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar

from ..._async.run import Run
from ...core.answers import Answer, Approve, Reject
from ...core.fields import Id, Json
from ...core.limits import JSON
from ...core.shape import Model
from ...core.tools import Tool
from ...errors import CallFailed, InvalidInput
from .decisions import AwaitExternal, decision_json, parse_decision, silence

F = TypeVar("F", bound=Callable[..., Any])

PATIENCE: Final = timedelta(minutes=5)
"""How long an approver may take, where nobody says otherwise."""


class Effect(StrEnum):
    """What a call of a tool does to the world."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"
    DESTRUCTIVE = "destructive"


class EffectGate(StrEnum):
    """Which calls are asked about, by the effect of their tool."""

    ALWAYS = "always"
    DESTRUCTIVE_ONLY = "destructive_only"
    MUTATING_AND_ABOVE = "mutating_and_above"

    def asks(self, effect: Effect) -> bool:
        """Whether a call with this effect is asked about."""
        return effect in _ASKED[self]


_ASKED: Final[dict[EffectGate, frozenset[Effect]]] = {
    EffectGate.ALWAYS: frozenset(Effect),
    EffectGate.MUTATING_AND_ABOVE: frozenset({Effect.MUTATING, Effect.DESTRUCTIVE}),
    EffectGate.DESTRUCTIVE_ONLY: frozenset({Effect.DESTRUCTIVE}),
}


def effect(what: Effect) -> Callable[[F], F]:
    """Declares what a tool does: `@effect(Effect.READ_ONLY)`."""

    def declare(function: F) -> F:
        function.__broker_effect__ = what  # type: ignore[attr-defined]
        return function

    return declare


def effect_of(tool: Any) -> Effect:
    """What a tool was declared to do; one that does not say counts as destructive, so that every gate asks."""
    found = getattr(Tool.of(tool).function, "__broker_effect__", Effect.DESTRUCTIVE)
    return Effect(found)


class Request(Model):
    """What an approver is shown of one call."""

    SHOWN: ClassVar[tuple[str, ...]] = ("run_id", "tool_use_id", "tool", "effect")

    run_id: Id
    tool_use_id: Id
    tool: Id
    input: Json
    effect: Effect


class Approver(Protocol):
    """Decides about one call: `Approve`, `Reject` with a reason, `AwaitExternal`. One that raises fails the attempt."""

    def __call__(self, request: Request, /) -> Awaitable[Answer]:
        """The decision about this call; asked once for each `tool_use_id` of a run."""
        ...


async def external(_: Request) -> Answer:
    """The approver that decides nothing here: every call awaits somebody external."""
    return AwaitExternal()


def patient(
    approver: Approver, *, policy: timedelta = PATIENCE, deadline: datetime | None = None
) -> Approver:
    """The same approver, for whom silence within the policy's time, or past the deadline, is a reject with a reason.

    The shorter of the two counts. Cancelling whoever waits is neither a reject nor a timeout: it goes through.
    """

    async def decide(request: Request) -> Answer:
        left = policy if deadline is None else min(policy, deadline - datetime.now(UTC))
        seconds = max(left.total_seconds(), 0.0)
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await approver(request)
        except TimeoutError:
            if not scope.expired():
                raise
        return silence(seconds)

    return decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Calls tools through a gate and an approver. Those that await somebody external are asked in the broker.

    `expires_in` is the deadline of such a question (default: the namespace's, 24 h); past it the call is not run.
    """

    approver: Approver = external
    gate: EffectGate = EffectGate.ALWAYS
    reviewers: tuple[str, ...] = ()
    expires_in: timedelta | Literal["default"] | None = "default"

    async def call(
        self, run: Run[Any], tool: Any, arguments: dict[str, JSON], *, tool_use_id: str, context: Any = ()
    ) -> JSON:
        """What one call returned. Raises `CallFailed` where it was rejected, with the reason, or expired or failed.

        The decision is made once for a `tool_use_id` of a run and found again at every later entry. What an approver
        returns that is no decision raises `InvalidInput`, and nothing runs.
        """
        known = Tool.of(tool)
        # The arguments are part of the record, so that a decision about others is never found; the effect is not.
        decided = partial(self._decided, run.id, effect_of(known))
        told = await run.step(decided, tool_use_id, known.name, arguments, key=f"approval/{tool_use_id}")
        match parse_decision(told):
            case Reject(reason=reason):
                raise CallFailed(known.name, "rejected", reason)
            case AwaitExternal():
                asked = replace(
                    known, gated=True, reviewers=self.reviewers or known.reviewers, expires_in=self.expires_in
                )
                return await run.call(asked, arguments, call_id=tool_use_id, context=context)
            case _:
                return await run.call(known, arguments, call_id=tool_use_id, context=context)

    async def _decided(self, run_id: str, effect: Effect, tool_use_id: str, tool: str, input: JSON) -> JSON:  # noqa: A002
        """The decision about a call as JSON; what the gate does not ask about is approved."""
        if not self.gate.asks(effect):
            return decision_json(Approve())
        decision = await self.approver(
            Request(run_id=run_id, tool_use_id=tool_use_id, tool=tool, input=input, effect=effect)
        )
        if not isinstance(decision, Answer):
            raise InvalidInput("decision", "is no decision", "Approve, Reject or AwaitExternal")
        return decision_json(decision)
