"""Policies: functions that see a call before anybody is asked about it, and again whenever its arguments change.

A policy gets an `ApprovalRequest` and says None (go on), another request (go on with its arguments), `Skip` (this
call is not made) or `Stop` (the turn ends before anybody is asked). One that raises skips its call: nothing that was
not judged runs.
"""

import functools
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from ...core.digest import canonical_json
from ...core.limits import JSON
from ...core.tools import Tool, is_async, running_call
from .decisions import ApprovalRequest


@dataclass(frozen=True, slots=True)
class Skip:
    """This call is not made; the agent is told why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The turn ends: no call of it is made, and nobody is asked."""

    reason: str


Ruling: TypeAlias = ApprovalRequest | Skip | Stop | None


class Policy(Protocol):
    """What judges a call: any function of it. It must say the same of the same call each time.

    A handler is entered again after a pause, and its calls are judged again.
    """

    def __call__(self, asked: ApprovalRequest, /) -> Ruling:
        """None to go on as asked, a request to go on with its arguments, `Skip` or `Stop`."""


class TurnStopped(Exception):
    """A policy stopped the turn before anybody was asked."""


class PolicyRefusal(Exception):
    """A policy refused the arguments that a call was about to run with; the agent is told."""


def rule(policies: Sequence[Policy], asked: ApprovalRequest) -> ApprovalRequest | Skip | Stop:
    """What the policies make of a call, one after the other, each of what the one before it left."""
    for policy in policies:
        try:
            said = policy(asked)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call was not judged
            return Skip(f"a policy failed ({type(error).__name__})")
        if isinstance(said, Skip | Stop):
            return said
        if said is not None:
            asked = asked.model_copy(update={"arguments": said.arguments})
    return asked


def guarded(tool: Tool, policies: Sequence[Policy], requires_approval: bool) -> Tool:  # noqa: FBT001 - a flag of the wire
    """The tool with a last look at what it is about to run with, whoever changed it since the call was judged."""

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = running_call()
        given = dict(inspect.signature(tool.function).bind(*args, **kwargs).arguments) if args else kwargs
        asked = ApprovalRequest(
            id=call.id if call else tool.name, name=tool.name, arguments=given,
            requires_approval=requires_approval,
        )  # fmt: skip
        said = rule(policies, asked)
        if isinstance(said, Skip | Stop):
            raise PolicyRefusal(said.reason)
        if not same(said.arguments, asked.arguments):
            raise PolicyRefusal("a policy would change the arguments that were approved")

    @functools.wraps(tool.function)
    async def later(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return await tool.function(*args, **kwargs)

    @functools.wraps(tool.function)
    def now(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return tool.function(*args, **kwargs)

    return replace(tool, function=later if is_async(tool.function) else now)


def same(one: JSON, other: JSON) -> bool:
    """Whether two arguments are equal as JSON: the order of keys is no matter, 1.0 is 1."""
    return canonical_json(one) == canonical_json(other)
