"""Approvals as swink's loop makes them: which calls are asked about, and what policies say before and after.

The order of one turn: policies judge the whole batch, and a stop ends the turn before anybody is asked; the calls that
are left are asked about with the arguments the policies made of them; each is decided by itself; edited arguments are
judged again when they are given and once more before they run.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from ..._async.client import AsyncBroker
from ..._async.run import Run
from ...core.answers import Answer, Approve, Edit, Principal, Reject
from ...core.limits import JSON
from ...core.outcomes import Invalid, Outcome
from ...core.toolcalls import ToolCall
from ...core.tools import Tool, registry
from .decisions import OFFERS, ApprovalRequest, read_decision
from .policies import Policy, Skip, Stop, TurnStopped, guarded, rule, same

SESSION_TRUST: Final = "trust for this session"
"""The note of an approval that says: do not ask about this tool again."""

Tools = Mapping[str, Any] | Sequence[Any]


class ApprovalMode(StrEnum):
    """Which calls are asked about."""

    ENABLED = "enabled"
    """All of them."""
    SMART = "smart"
    """Those of tools that declare it (`@gated`), unless the session trusts the tool. The default."""
    BYPASSED = "bypassed"
    """None. Policies still judge."""

    def asks(self, *, requires_approval: bool, trusted: bool = False) -> bool:
        """Whether a call of a tool is asked about."""
        match self:
            case ApprovalMode.ENABLED:
                return True
            case ApprovalMode.SMART:
                return requires_approval and not trusted
            case _:
                return False


class Approvals:
    """The approvals of one session's loop.

    `trusted` are tools that the session trusts from the start. An approval whose note is `SESSION_TRUST` adds its tool;
    that is recorded in the run's journal, so another worker that goes on with the run knows it too.
    """

    def __init__(
        self, *policies: Policy, mode: ApprovalMode = ApprovalMode.SMART, trusted: Iterable[str] = ()
    ) -> None:
        self.policies: tuple[Policy, ...] = policies
        self.mode: ApprovalMode = mode
        self.trusted: frozenset[str] = frozenset(trusted)

    def review(self, batch: Sequence[ApprovalRequest]) -> list[ApprovalRequest | Skip]:
        """What the policies make of a turn, before anybody is asked. Raises `TurnStopped` where one stops it."""
        ruled: list[ApprovalRequest | Skip] = []
        for said in [rule(self.policies, one) for one in batch]:
            if isinstance(said, Stop):
                raise TurnStopped(said.reason)
            ruled.append(said)
        return ruled

    def tools(self, tools: Tools) -> dict[str, Tool]:
        """The tools for `run.calls`: gated as mode and trust say, with a last look by the policies."""
        return {name: self._tool(one) for name, one in registry(tools).items()}

    async def calls(
        self, run: Run[Any], tool_calls: Sequence[Any], tools: Tools, *, context: Sequence[JSON] = ()
    ) -> list[dict[str, JSON]]:
        """The tool messages that answer a model's calls: `run.calls` with modes, trust and policies.

        Mode and trust of a turn are recorded when it is first made: a change meanwhile counts from the next turn on.
        Raises `TurnStopped`, and `Paused` where somebody is asked.
        """
        known = registry(tools)
        made = Approvals(*self.policies, mode=self.mode, trusted=self.trusted)
        said = await run.step(made._now, run)
        made.mode, made.trusted = ApprovalMode(said["mode"]), frozenset(said["trusted"])
        self.trusted = made.trusted
        asked = [ToolCall.parse(one) for one in tool_calls]
        ruled = iter(made.review([_request(one, known) for one in asked if one.fault is None]))
        # A call with a fault does not run, whatever it says: it goes along as it came.
        plan = [(one, next(ruled) if one.fault is None else None) for one in asked]
        kept = [
            _changed(one, to) if isinstance(to, ApprovalRequest) else raw
            for raw, (one, to) in zip(tool_calls, plan, strict=True)
            if not isinstance(to, Skip)
        ]
        answered = iter(await run.calls(kept, made.tools(known), context=context) if kept else ())
        return [_skipped(one, to) if isinstance(to, Skip) else next(answered) for one, to in plan]

    def check(self, asked: ApprovalRequest, answer: Answer, tool: Tool | None = None) -> Answer | Invalid:
        """The answer as it may be given: edited arguments are held against the tool and the policies again (S17)."""
        if not isinstance(answer, Edit):
            return answer
        new = answer.arguments
        if tool is not None and not (isinstance(new, dict) and tool.fits(new)):
            return Invalid(
                field="value", problem="does not fit the tool", allowed=f"arguments of {tool.name}"
            )
        said = rule(self.policies, asked.model_copy(update={"arguments": new}))
        if isinstance(said, Skip | Stop):
            return Invalid(field="value", problem=f"is refused: {said.reason}", allowed="other arguments")
        return answer if same(said.arguments, new) else Edit(arguments=said.arguments, note=answer.note)

    async def answer(
        self,
        broker: AsyncBroker,
        interrupt_id: str,
        decision: JSON,
        *,
        tools: Tools = (),
        by: Principal | None = None,
        seen: str | None = None,
    ) -> Outcome:
        """What became of swink's decision about one question. What is refused here leaves the question open.

        `decision` is swink's JSON or an answer. With `tools`, edited arguments must be such as the tool takes. Raises
        `InvalidInput` for a decision that is none, `UnknownId`. Safe to repeat.
        """
        given = decision if isinstance(decision, Answer) else read_decision(decision)
        if isinstance(given, Edit):
            asked = ApprovalRequest.of((await broker.inbox.get(interrupt_id)).interrupt)
            checked = self.check(asked, given, registry(tools).get(asked.name))
            if isinstance(checked, Invalid):
                return checked
            given = checked
        return await broker.inbox.answer(interrupt_id, given, by=by, seen=seen)

    async def ask(self, handler: Callable[[ApprovalRequest], Any], asked: ApprovalRequest) -> Answer:
        """The answer of a handler in this process: a function or coroutine that gives swink's JSON or an answer.

        Whatever goes wrong in it is a rejection, and so is an answer that is not understood or that policies refuse.
        Only the end of the waiting itself is none: a cancelled task stays cancelled.
        """
        try:
            said = handler(asked)
            said = await said if inspect.isawaitable(said) else said
            checked = self.check(asked, said if isinstance(said, Answer) else read_decision(said))
        except Exception as error:  # noqa: BLE001 - fail closed
            return Reject(reason=f"the approval failed ({type(error).__name__})")
        return Reject(reason=str(checked)) if isinstance(checked, Invalid) else checked

    def _tool(self, tool: Tool) -> Tool:
        gated = self.mode.asks(requires_approval=tool.gated, trusted=tool.name in self.trusted)
        offers = (tool.offers or OFFERS) if gated else tool.offers
        return replace(guarded(tool, self.policies, tool.gated), gated=gated, offers=offers)

    def _now(self, run: Run[Any]) -> dict[str, JSON]:
        """Mode and trust at this turn, with what the answers of the last pause said."""
        learned = {
            one.interrupt.action.tool
            for one in run.interrupts
            if one.interrupt.action is not None
            and one.resolution is not None
            and isinstance(one.resolution.answer, Approve | Edit)
            and one.resolution.answer.note == SESSION_TRUST
        }
        return {"mode": self.mode.value, "trusted": sorted(self.trusted | learned)}


def _request(asked: ToolCall, tools: Mapping[str, Tool]) -> ApprovalRequest:
    tool = tools.get(asked.name)
    return ApprovalRequest(
        id=asked.entry or asked.name, name=asked.name, arguments=asked.arguments,
        requires_approval=tool is not None and tool.gated,
    )  # fmt: skip


def _changed(asked: ToolCall, to: ApprovalRequest) -> dict[str, JSON]:
    return {"id": asked.id, "name": asked.name, "arguments": to.arguments}


def _skipped(asked: ToolCall, why: Skip) -> dict[str, JSON]:
    content = f"Error (skipped): {why.reason}. It was not run."
    return {"role": "tool", "tool_call_id": asked.id, "name": asked.name, "content": content}
