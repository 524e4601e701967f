"""The tools of a server of MCP as an agent of the broker: a call that is asked something parks, and goes on elsewhere.

On protocol 2026-07-28 a call that needs input returns, with a sealed state of the server's; it is stored, and sent back
with the answers. On the older ones the server asks in the middle of a call: the connection is closed then, and when the
answer is there the call is made again, in which the question is answered at once.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

import mcp
import mcp.types

from ..._async.run import Run
from ...core.answers import Approve, Cancel, Complete, Fail, Respond
from ...core.limits import JSON, check_name
from ...core.models import Action, Interrupt
from ...errors import Corrupt, InvalidInput
from .._contract import Answered, Described, Finished, Outcome, Parked, current_run, digest_of, drive
from .asking import LATER, key_of, later, questions, responses

KEY: Final = "interrupt-broker/key"
"""In the `_meta` of each call: what makes a repeat of this round of it harmless, the same on every attempt."""
TOLD: Final = "interrupt-broker/told"
"""In the `_meta` of a result: what a model should be told of answers that said no, or did not come."""

Elicit = Callable[[Any, Any], Any]
Connect = Callable[[Elicit], AbstractAsyncContextManager[Any]]
"""Opens a client: `lambda elicit: mcp.Client(url, elicitation_callback=elicit)`."""

_HOPELESS: Final = frozenset({mcp.types.INVALID_PARAMS, mcp.types.METHOD_NOT_FOUND})
"""Errors of a server that another try does not cure, such as a request state that has expired."""


class Tools:
    """The tools of one server, as the handler of an agent: `worker.add("bank", Tools("bank", connect))`.

    The input of a run is `{"tool": ..., "arguments": {...}}`, its result that of the call, in the JSON of the protocol.
    A run is one call, over any number of questions. Each round of it has a connection of its own, and the key in its
    `_meta` under `KEY`. `revision` stands for the server's deployment: a state is only sent to the one that sealed it.
    A server that asks to be called again is, every `again_after`; whoever completes the interrupt with null is quicker,
    and a value stands for the result. What the server refuses for good is a result with `isError`.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        *,
        revision: str = "",
        expires_in: timedelta | Literal["default"] | None = "default",
        again_after: timedelta = timedelta(minutes=1),
    ) -> None:
        self.name: str = check_name("name", name)
        self.described: Described = Described("mcp", "2", "1", name, digest_of([name, revision]))
        self.builds: tuple[str, ...] = (self.described.build,)
        self._connect = connect
        self._expires_in = expires_in
        self._again_after = again_after

    async def __call__(self, run: Run[Any]) -> JSON:
        """The result of the run's call, or the run has paused: what `Worker.add` takes."""
        return await drive(run, self)

    async def start(self, given: JSON) -> Outcome:
        """The first round of a call."""
        return await self._round(_Call.of(given))

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next round of a call, with what was answered to the last one."""
        call = _Call.read(state)
        for one in answers:
            if one.id != LATER and not isinstance(one.answer, Approve | Respond):
                call.told.append(one.text)
        if call.is_later:
            return await self._later(call, answers)
        given = responses(answers)
        if call.state is None:
            call.answered |= {key: said.model_dump(mode="json", by_alias=True) for key, said in given.items()}
            return await self._round(call)
        return await self._round(call, given)

    async def read_back(self, parked: Parked) -> None:
        """Nothing, or `Corrupt`: the state of a call is JSON."""
        _Call.read(parked.state)

    async def _later(self, call: "_Call", answers: Sequence[Answered]) -> Outcome:
        for one in answers:
            match one.answer:
                case Complete(value=value) if value is not None:
                    return call.ended(value if isinstance(value, str) else json.dumps(value), is_error=False)
                case Fail() | Cancel():
                    return call.ended(one.text)
                case _:  # its time has come, or somebody has rung
                    pass
        return await self._round(call)

    async def _round(self, call: "_Call", given: dict[str, Any] | None = None) -> Outcome:
        asking = _Asking(call.answered)
        run = current_run()
        result: Any = None
        error: mcp.MCPError | None = None
        async with self._connect(asking) as client:
            made = client.session.call_tool(
                call.tool, call.arguments, input_responses=given, request_state=call.state,
                meta={KEY: f"{run.id}:{run.seq}"}, allow_input_required=True,
            )  # fmt: skip
            try:
                result = await asking.unless_asked(made)
            except mcp.MCPError as raised:  # kept for outside: a client that closes wraps it
                error = raised
        if error is not None:
            if error.code not in _HOPELESS:
                raise error
            return call.ended(error.message)
        if result is None:
            return call.parked(*questions(asking.asked, call.action, self._expires_in))
        if isinstance(result, mcp.types.InputRequiredResult):
            call.state = result.request_state
            call.is_later = not result.input_requests
            if call.is_later:
                return call.parked(later(call.action, self._again_after))
            return call.parked(*questions(result.input_requests, call.action, self._expires_in))
        return call.finished(result)


@dataclass(slots=True)
class _Call:
    """One call as it is stored between its rounds. `answered` are answers to questions in the middle of it, by key."""

    tool: str
    arguments: dict[str, JSON] = field(repr=False)
    state: str | None = field(default=None, repr=False)
    is_later: bool = False
    answered: dict[str, JSON] = field(default_factory=dict, repr=False)
    told: list[str] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, given: JSON) -> "_Call":
        """The call that a run's input asks for."""
        if not isinstance(given, dict) or not isinstance(given.get("tool"), str):
            raise InvalidInput("input", "names no tool", '{"tool": "...", "arguments": {...}}')
        arguments = given.get("arguments", {})
        if not isinstance(arguments, dict):
            raise InvalidInput("input.arguments", "is no map", "the arguments by their names")
        return cls(given["tool"], arguments)

    @classmethod
    def read(cls, state: bytes) -> "_Call":
        """The call behind a stored state."""
        try:
            return cls(**json.loads(state))
        except (TypeError, ValueError):
            raise Corrupt("state of a call", "it is none of this adapter's") from None

    @property
    def action(self) -> Action:
        """What the questions are about."""
        return Action(tool=self.tool, arguments=self.arguments)

    def parked(self, *asked: Interrupt) -> Parked:
        """The pause."""
        return Parked(json.dumps(asdict(self)).encode(), asked)

    def ended(self, text: str, *, is_error: bool = True) -> Finished:
        """The end of a call that the server did not end itself."""
        content = [mcp.types.TextContent(type="text", text=text)]
        return self.finished(mcp.types.CallToolResult(content=content, is_error=is_error))

    def finished(self, result: Any) -> Finished:
        """The end of the call."""
        told: dict[str, JSON] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.told:
            told["_meta"] = {**told.get("_meta", {}), TOLD: list(self.told)}
        return Finished(told)


class _Asking:
    """The callback of one round's client: gives the answers it has, and ends the round at the first it has not."""

    def __init__(self, answered: Mapping[str, JSON]) -> None:
        self._answered = answered
        self._asked: asyncio.Future[tuple[str, Any]] = asyncio.get_running_loop().create_future()

    async def __call__(self, _context: Any, params: Any) -> Any:
        key = key_of(params)
        if key in self._answered:
            return mcp.types.ElicitResult.model_validate(self._answered[key])
        if not self._asked.done():
            self._asked.set_result((key, params))
        return await asyncio.get_running_loop().create_future()  # until its connection is closed

    @property
    def asked(self) -> Mapping[str, Any]:
        """The question that ended the round."""
        key, params = self._asked.result()
        return {key: mcp.types.ElicitRequest(params=params)}

    async def unless_asked(self, made: Any) -> Any:
        """What the call returned; None where a question came first, and then the call was given up."""
        call = asyncio.ensure_future(made)
        try:
            await asyncio.wait([call, self._asked], return_when=asyncio.FIRST_COMPLETED)
            return await call if call.done() else None
        finally:
            call.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await call
