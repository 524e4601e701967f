"""The two sides of a replay: the agent that goes through recorded runs, and the party that answers its questions.

The agent is an ordinary loop over the run's journal. The model is the record, and so are the tools' results; what is
tried is everything in between.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from .._async.run import Run
from ..core.answers import Answer, Approve, Complete, Reject
from ..core.digest import content_digest
from ..core.limits import JSON
from ..core.models import Action, Audience
from ..core.records import InterruptRecord
from ..core.tools import Pending, current_call, gated, long_running
from .ledger import Ledger, compact
from .transcripts import Call, Message, Rules, Transcript

AGENT: Final = "replay"
QUEUE: Final = "replay"

Tool = Callable[..., Awaitable[Any]]

LARGEST_RESULT: Final = 900_000
"""Longer results, in bytes as JSON, are stored as their digest: a record of the broker holds 1 MiB."""


def exact(messages: JSON) -> str:
    """Messages as text that is equal for equal messages only: 1, 1.0 and true differ, the order of keys does not."""
    return json.dumps(messages, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def result_of(messages: JSON) -> dict[str, JSON]:
    """What a run finishes with: its messages, or their digest where they are too many."""
    text = exact(messages).encode()
    return {"messages": messages} if len(text) <= LARGEST_RESULT else {"digest": content_digest(text)}


@dataclass(frozen=True, slots=True)
class Model:
    """What was said by the model of one recorded run. It thinks for `pace` seconds."""

    transcript: Transcript
    pace: float

    async def says(self, messages: list[Message]) -> Message:
        """The recorded turn after these messages."""
        await asyncio.sleep(self.pace)
        return self.transcript.messages[len(messages)]


class Player:
    """The agent: what the model and the user said is taken from the record, the tools are executed.

    Each execution leaves a line in the effects file before it works for `pace` seconds, so that one whose process is
    killed is known to have happened; each call whose result is in the journal leaves one in the file of records.
    """

    def __init__(
        self, name: str, transcripts: dict[str, Transcript], rules: Rules, effects: Ledger, recorded: Ledger,
        pace: float = 0.0,
    ) -> None:  # fmt: skip
        self._name = name
        self._transcripts = transcripts
        self._rules = rules
        self._effects = effects
        self._recorded = recorded
        self._pace = pace
        self._runs, self._asks, self._starts = self._tools()

    async def play(self, run: Run[Any]) -> JSON:
        """Goes through a run: from the top, at every attempt. What is in its journal comes back."""
        transcript = self._transcripts[run.input["run"]]
        model = Model(transcript, self._pace)
        messages: list[Message] = []
        while len(messages) < len(transcript.messages):
            said = transcript.messages[len(messages)]
            if said["role"] != "assistant":
                messages.append(said)
                continue
            messages.append(await run.step(model.says, messages))
            if calls := transcript.turns.get(len(messages) - 1):
                tools = {call.tool: self._tool(call.tool) for call in calls}
                told = await run.calls([asked(call) for call in calls], tools, context=messages)
                self._note(run, calls)
                messages += [
                    answered(call, message["content"]) for call, message in zip(calls, told, strict=True)
                ]
        return result_of(messages)

    # Tools -----------------------------------------------------------------------------------------------------

    def _tool(self, name: str) -> Tool:
        if name in self._rules.confirm:
            return self._asks
        return self._starts if name in self._rules.long else self._runs

    def _tools(self) -> tuple[Tool, Tool, Tool]:
        """One that runs, one that runs when it is approved, and one that is completed out of band."""

        async def execute(**arguments: JSON) -> JSON:
            return await self._execute(arguments)

        @gated
        async def ask(**arguments: JSON) -> JSON:
            return await self._execute(arguments)

        @long_running
        async def start(**arguments: JSON) -> Pending:
            await self._execute(arguments)
            return Pending(handle=f"job of {current_call().id}")

        return execute, ask, start

    async def _execute(self, arguments: JSON) -> JSON:
        """The recorded result of the call that is running; a complaint where it is not the recorded call."""
        now = current_call()
        line = {"key": now.key, "attempt": now.attempt, "fence": now.fence, "worker": self._name}
        self._effects.add(compact(line))
        await asyncio.sleep(self._pace)
        call = self._transcripts[now.session_id].calls[now.id]
        return call.result.get("content") if arguments == given(call) else "called with other arguments"

    def _note(self, run: Run[Any], calls: tuple[Call, ...]) -> None:
        """Writes down that these results are in the journal: none of the calls may run again."""
        for call in calls:
            self._recorded.add(compact({"key": f"{run.id}:{call.key}", "fence": run.fence}))


# Between the record and the journal ------------------------------------------------------------------------------


def given(call: Call) -> dict[str, JSON]:
    """The arguments of a call. What is no object, and so nothing a function could be called with, is put in one."""
    return call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}


def asked(call: Call) -> dict[str, JSON]:
    """A call as the journal takes it. Recorded ids may be missing or repeated, so its place in the run is its id."""
    return {"id": call.key, "name": call.tool, "arguments": given(call)}


def answered(call: Call, content: JSON) -> Message:
    """The message about a result: the recorded keys, and as content what the journal says that the tool returned."""
    if not isinstance(call.result.get("content"), str):
        with suppress(ValueError):  # a failure is a sentence
            content = json.loads(content)
    return {key: content if key == "content" else value for key, value in call.result.items()}


def answer_to(record: InterruptRecord, transcripts: dict[str, Transcript]) -> Answer | None:
    """The recorded answer to a question; a rejection where it asks something else; None where it is no replay's."""
    transcript = transcripts.get(record.session_id)
    call = transcript.calls.get(record.interrupt.call_id or "") if transcript else None
    if call is None or record.agent != AGENT:
        return None
    found = record.interrupt.action
    if found is None or found.digest != Action(tool=call.tool, arguments=given(call)).digest:
        return Reject(reason="the record has another call here")
    if record.interrupt.addressed_to is Audience.COMPLETIONS:
        return Complete(value=call.result.get("content"))
    return Approve()
