"""A server of MCP that takes each request state once: what came of it the first time is what a repeat is told."""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import mcp
import mcp.types

from ..._async.client import AsyncBroker
from ..._async.run import Run
from ...core.limits import JSON
from ...core.records import RunRecord
from ...core.states import RunState
from ...errors import AlreadyLeased, InvalidInput, UnknownId
from .._contract import here

AGENT: Final = "mcp-round"
_ROUNDS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_STATE: Final = "requestState"

CallNext = Callable[[Any], Awaitable[Any]]


class SingleUse:
    """A middleware: `MCPServer(name, request_state_security=..., middleware=[SingleUse(broker)])`.

    A client may send a request state again, because it lost the reply or because it means harm; the protocol allows it.
    Here a state is a run of the broker: the first to send it has its round run, with the answers it brings. Whoever
    sends it later gets the same result, and nothing runs; while it runs, an error. A process that dies in the middle
    leaves the round to whoever sends the state next: the tools find the same `effect_key` then.
    A state is good for `within`: by default, and at most, for `keep_settled` of the namespace's settings, since one
    that nobody remembers would be new again.
    """

    def __init__(
        self, broker: AsyncBroker, *, queue: str = "mcp-rounds", within: timedelta | None = None
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._within = within

    async def __call__(self, context: Any, call_next: CallNext) -> Any:
        """One request: passed on as it is, unless it sends a state back or its result asks for one."""
        if context.method not in _ROUNDS:
            return await call_next(context)
        await self._broker.open()
        sent = (context.params or {}).get(_STATE)
        if sent is None:
            return self._marked(_wire(await call_next(context)))
        mark, params = self._unmarked(sent, context.params)
        return await self._once(mark, lambda: call_next(replace(context, params=params)))

    async def _once(self, mark: str, go_on: Callable[[], Awaitable[Any]]) -> Any:
        started = await self._broker.start(AGENT, session=mark, key=mark, queue=self._queue)
        async with AsyncExitStack() as stack:
            try:
                run = await stack.enter_async_context(self._broker.take(started.run_id, holder=AGENT))
            except (AlreadyLeased, UnknownId):
                return _again(await self._broker.runs.get(started.run_id))
            return await self._first(run, go_on)

    async def _first(self, run: Run[Any], go_on: Callable[[], Awaitable[Any]]) -> Any:
        with here(run):
            try:
                result = self._marked(_wire(await go_on()))
            except mcp.MCPError as error:  # the round came to that, and so does every repeat
                await run.finish({"error": error.error.model_dump(mode="json", exclude_none=True)})
                raise
        await run.finish({"result": result})
        return result

    # Marks: the boundary of the server seals them with the state, so that nobody else can make one ----------------

    def _marked(self, result: dict[str, JSON]) -> dict[str, JSON]:
        """The result, with a mark in the state that it asks to be sent back."""
        if result.get("resultType") != "input_required":
            return result
        mark = [secrets.token_hex(16), self._now(), result.get(_STATE)]
        return {**result, _STATE: json.dumps(mark)}

    def _unmarked(self, sent: str, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The mark of a state, and the request as it is without. Raises `MCPError` for one that is no more good."""
        try:
            mark, at, state = json.loads(sent)
            age = timedelta(microseconds=self._now() - at)
        except (TypeError, ValueError):
            raise _refused("This request state was not made for a single use") from None
        if age > self._longest:
            raise _refused("This request state is too old")
        rest = {name: value for name, value in params.items() if name != _STATE}
        return mark, rest if state is None else {**rest, _STATE: state}

    @property
    def _longest(self) -> timedelta:
        keep = self._broker._link.settings.keep_settled  # noqa: SLF001 - the same house
        if self._within is not None and self._within > keep:
            raise InvalidInput("within", "is longer than what is settled is kept", f"at most {keep}")
        return self._within or keep

    def _now(self) -> int:
        return self._broker._link.server_now()  # noqa: SLF001 - the same house


def _again(run: RunRecord) -> Any:
    """What a state is told that was sent before."""
    if run.state is not RunState.FINISHED:
        raise _refused(
            "This request state is in use" if run.state is not RunState.DEAD else "Its round has failed"
        )
    if "error" in run.result:
        raise mcp.MCPError.from_error_data(mcp.types.ErrorData.model_validate(run.result["error"]))
    return run.result["result"]


def _wire(result: Any) -> dict[str, JSON]:
    if isinstance(result, Mapping):
        return dict(result)
    told: dict[str, JSON] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return told


def _refused(text: str) -> Exception:
    error: Exception = mcp.MCPError(mcp.types.INVALID_PARAMS, text, {"reason": "invalid_request_state"})
    return error
