"""A script that calls tools one after the other and can be frozen at each call, as a CodeAct interpreter can."""

import json
from collections.abc import Sequence
from typing import Any

from broker import AsyncBroker, Run
from broker.interop import adk
from tests.clients._async.journaling import Agent
from tests.clock import Clock

FIRST = 7
"""The id of the first call."""

Line = tuple[str, dict[str, Any]]


class Script:
    """Lines of (tool, arguments). What they came to is all it remembers, and its snapshot is that."""

    def __init__(self, lines: Sequence[Line], snapshot: bytes = b"[]") -> None:
        self.lines = lines
        self.told: list[Any] = json.loads(snapshot)

    @property
    def snapshot(self) -> bytes:
        return json.dumps(self.told).encode()

    def next(self) -> adk.PendingCall | None:
        """The call it stands at; None at its end."""
        at = len(self.told)
        if at == len(self.lines):
            return None
        tool, args = self.lines[at]
        return adk.PendingCall(call_id=FIRST + at, tool=tool, args=args)

    def tell(self, record: adk.ResolutionRecord) -> None:
        """Goes on with what the call came to."""
        self.told.append(adk.Resolved(record=record).to_json())


async def play(run: Run[Any], lines: Sequence[Line], tools: Any, **how: Any) -> list[Any]:
    """Runs a script to its end, from where it was frozen."""
    agent = adk.CodeAct(run, tools, **how)
    script = Script(lines, agent.pending.snapshot if agent.pending is not None else b"[]")
    transcript = list(agent.pending.transcript) if agent.pending is not None else []
    if agent.pending is not None:
        record = await agent.resume()
        transcript += await agent.queued()
        script.tell(record)
    while (call := script.next()) is not None:
        at = len(script.told)
        script.tell(await agent.call(call, snapshot=script.snapshot, iteration=at, transcript=transcript))
    return script.told


class Player(Agent):
    """One run of a script, its attempts made one by one, and its session as a host sees it."""

    def __init__(self, broker: AsyncBroker, clock: Clock, tools: Any, *lines: Line, **how: Any) -> None:
        async def handler(run: Run[Any]) -> list[Any]:
            return await play(run, self.lines, self.tools, **self.how)

        super().__init__(broker, clock, handler)
        self.tools, self.lines, self.how = tools, lines, how

    @property
    def session(self) -> adk.AsyncAgentSession:
        """What waits for this run."""
        return adk.AsyncAgentSession(self.broker, "s", "airline", run_id=self.run_id)


def completion(name: str, response: Any, id: str | None = None) -> dict[str, Any]:
    """A message with one result."""
    part = {"functionResponse": {"name": name, "response": response}}
    return {"role": "user", "parts": [{"text": "here"}, part | ({"id": id} if id is not None else {})]}


def value(given: Any) -> dict[str, Any]:
    return {"kind": "resolved", "Value": given}


def error(text: str) -> dict[str, Any]:
    return {"kind": "resolved", "Raise": text}
