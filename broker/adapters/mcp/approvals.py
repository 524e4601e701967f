"""The broker as a server of MCP: its tools list, show and answer the interrupts of a namespace, for whoever may.

Who it is comes from the token that the client's connection was authenticated with, never from what a tool is given.
"""

from collections.abc import Callable
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.mcpserver import MCPServer

from ..._async.client import AsyncBroker
from ...core.answers import Answer, Principal, PrincipalKind
from ...core.limits import JSON
from ...core.outcomes import NotAllowed, Outcome, Unknown
from ...core.records import InterruptRecord
from ...errors import BrokerError, InvalidInput, UnknownId

Who = Callable[[Any], Principal | None]
May = Callable[[Principal, InterruptRecord], bool]

INSTRUCTIONS = (
    "Runs of agents that wait for a person. Show a person what is asked, whole, before you answer for them; "
    "an answer is final. Pass the digest that you were shown: it stands for what the person has seen."
)
_MOST = 50


def person_of(token: Any) -> Principal | None:
    """Who a verified token is for: its subject, a person; without one its client, a service. None without a token.

    The groups are those of its claim `groups`.
    """
    if token is None:
        return None
    claims: dict[str, JSON] = token.claims or {}
    kind = PrincipalKind.PERSON if token.subject else PrincipalKind.SERVICE
    groups = claims.get("groups") or ()
    return Principal(
        id=token.subject or token.client_id, kind=kind, groups=tuple(groups), claims=claims, verified=True
    )


def may_answer(who: Principal, asked: InterruptRecord) -> bool:
    """Whether an interrupt is for somebody: it names no reviewers, or them or a group of theirs."""
    wanted = asked.interrupt.reviewers
    return not wanted or not {who.id, *who.groups}.isdisjoint(wanted)


def approvals(
    broker: AsyncBroker,
    *,
    who: Who = person_of,
    may: May = may_answer,
    name: str = "interrupts",
    **options: Any,
) -> Any:
    """An `MCPServer` whose tools list, show and answer open interrupts; `options` are its own (`auth=` ...).

    `who` is asked with the access token of each request, None where the connection has none: it says who that is, and
    None that nobody is. `may` says what somebody may see and answer; the rest is to them as if it were not there.
    For the operator's own machine, over standard input: `who=lambda _: Principal.local("ada")`.
    """
    desk = _Desk(broker, who, may)
    server = MCPServer(name, instructions=INSTRUCTIONS, **options)
    for tool in (desk.list_interrupts, desk.show_interrupt, desk.answer_interrupt):
        server.add_tool(tool)
    return server


class _Desk:
    def __init__(self, broker: AsyncBroker, who: Who, may: May) -> None:
        self._broker, self._who, self._may = broker, who, may

    async def list_interrupts(
        self, tool: str | None = None, label: str | None = None, cursor: str | None = None, limit: int = 20
    ) -> dict[str, Any]:
        """The open interrupts that you may answer, oldest first. Ask again with the cursor, until there is none."""
        who = self._known()
        if isinstance(who, NotAllowed):
            return _told(who)
        most = max(1, min(limit, _MOST))
        try:
            page = await self._broker.inbox.list(tool=tool, label=label, cursor=cursor, limit=most)
        except BrokerError as error:
            return _failed(error)
        items = [_row(one) for one in page.items if self._may(who, one)]
        return {"items": items, "cursor": page.cursor}

    async def show_interrupt(self, interrupt_id: str) -> dict[str, Any]:
        """One interrupt, whole: what is asked, which answers it takes, by when, and how it ended if it did."""
        found = await self._found(interrupt_id)
        return _told(found) if isinstance(found, Unknown | NotAllowed) else _whole(found)

    async def answer_interrupt(
        self, interrupt_id: str, digest: str, answer: dict[str, Any]
    ) -> dict[str, Any]:
        """Answers an interrupt, once and for good, for the person you work for. The digest is that of what they saw.

        The answer is {"kind": "approve"}, {"kind": "reject", "reason": ...}, {"kind": "edit", "arguments": {...}},
        {"kind": "respond", "payload": ...} or {"kind": "cancel"}, whichever it offers. Repeating is safe.
        """
        found = await self._found(interrupt_id)
        if isinstance(found, Unknown | NotAllowed):
            return _told(found)
        try:
            said = Answer.from_json(answer)
            outcome = await self._broker.inbox.answer(interrupt_id, said, seen=digest, by=self._principal())
        except BrokerError as error:
            return _failed(error)
        return _told(outcome)

    async def _found(self, interrupt_id: str) -> InterruptRecord | Unknown | NotAllowed:
        who = self._known()
        if isinstance(who, NotAllowed):
            return who
        try:
            found = await self._broker.inbox.get(interrupt_id)
        except (InvalidInput, UnknownId):
            return Unknown(id=interrupt_id)
        return found if self._may(who, found) else Unknown(id=interrupt_id)

    def _principal(self) -> Principal | None:
        return self._who(get_access_token())

    def _known(self) -> Principal | NotAllowed:
        return self._principal() or NotAllowed(reason="Nobody is known to ask")


def _row(asked: InterruptRecord) -> dict[str, JSON]:
    one = asked.interrupt
    return {
        "id": asked.id,
        "message": one.message,
        "tool": one.action.tool if one.action is not None else None,
        "offers": [str(kind) for kind in one.offered],
        "deadline": asked.deadline.isoformat() if asked.deadline is not None else None,
        "problem": asked.problem,
    }


def _whole(asked: InterruptRecord) -> dict[str, JSON]:
    one = asked.interrupt
    return _row(asked) | {
        "digest": asked.digest,
        "state": str(asked.state),
        "agent": asked.agent,
        "session": asked.session_id,
        "reason": one.reason,
        "arguments": one.action.arguments if one.action is not None else None,
        "payload": one.payload,
        "response_schema": one.response_schema,
        "resolution": asked.resolution.to_json() if asked.resolution is not None else None,
    }


def _told(outcome: Outcome) -> dict[str, Any]:
    told: Any = outcome.to_json()
    return {"ok": outcome.ok, **told, "text": str(outcome)}


def _failed(error: BrokerError) -> dict[str, Any]:
    return {"ok": False, "code": error.code, "text": str(error)}
