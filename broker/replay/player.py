"""The two sides of a replay: the agent that goes through recorded runs, and the party that answers its questions."""

import json
from typing import Any, Final

from .._async.run import Run
from ..core.answers import Answer, Approve, Complete, Reject
from ..core.digest import content_digest
from ..core.limits import JSON
from ..core.models import Action, Audience, Interrupt, InterruptState
from ..core.records import InterruptRecord, Resolution
from .ledger import Ledger
from .transcripts import Call, Message, Rules, Transcript

AGENT: Final = "replay"
QUEUE: Final = "replay"

LARGEST_RESULT: Final = 900_000
"""Longer results, in bytes as JSON, are stored as their digest: a record of the broker holds 1 MiB."""


def exact(messages: JSON) -> str:
    """Messages as text that is equal for equal messages only: 1, 1.0 and true differ, the order of keys does not."""
    return json.dumps(messages, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def result_of(messages: JSON) -> dict[str, JSON]:
    """What a run finishes with: its messages, or their digest where they are too many."""
    text = exact(messages).encode()
    return {"messages": messages} if len(text) <= LARGEST_RESULT else {"digest": content_digest(text)}


class Player:
    """The agent: what the model and the user said is taken from the record, the tools are executed.

    Everything before a pause comes from the state frozen in it. A call runs after its approval; a long one is started
    before the pause, and its result is what the answer brings. Each execution leaves its key in the effects file.
    """

    def __init__(self, transcripts: dict[str, Transcript], rules: Rules, effects: Ledger) -> None:
        self._transcripts = transcripts
        self._rules = rules
        self._effects = effects

    async def play(self, run: Run[Any]) -> JSON:
        """Goes on with a run to its next pause or its end."""
        transcript = self._transcripts[run.input["run"]]
        messages: list[Message] = list(run.state.context_snapshot) if run.state else []
        if run.state is not None:
            answers = {one.interrupt.call_id: one.resolution for one in run.interrupts if one.resolution}
            calls = transcript.turns[len(messages) - 1]
            messages += [self._answered(transcript, call, answers.get(call.key)) for call in calls]
        while len(messages) < len(transcript.messages):
            messages.append(transcript.messages[len(messages)])
            calls = transcript.turns.get(len(messages) - 1, ())
            questions = [question for call in calls if (question := self._question(call))]
            if questions:
                await self._pause(run, transcript, calls, questions, messages)
                return None
            messages += [self._execute(transcript, call) for call in calls]
        return result_of(messages)

    async def _pause(
        self,
        run: Run[Any],
        transcript: Transcript,
        calls: tuple[Call, ...],
        questions: list[Interrupt],
        messages: list[Message],
    ) -> None:
        for call in calls:
            if call.tool in self._rules.long:
                self._execute(transcript, call)
        await run.suspend(*questions, state=InterruptState(context_snapshot=messages, model=transcript.model))

    def _question(self, call: Call) -> Interrupt | None:
        action = Action(tool=call.tool, arguments=call.arguments)
        if call.tool in self._rules.confirm:
            return Interrupt.approval(action, call.key)
        if call.tool in self._rules.long:
            return Interrupt.completion(action, call.key)
        return None

    def _execute(self, transcript: Transcript, call: Call) -> Message:
        self._effects.add(f"{transcript.run_id}/{call.key}")
        return call.result

    def _answered(self, transcript: Transcript, call: Call, said: Resolution | None) -> Message:
        """The tool message of a call of a paused turn. One that nobody asked about simply runs."""
        match said.answer if said else None:
            case Complete(value=value):
                return {**call.result, "content": value}
            case Approve():
                return self._execute(transcript, call)
            case None if said is None and call.tool not in self._rules.confirm | self._rules.long:
                return self._execute(transcript, call)
            case _:
                return {**call.result, "content": f"not run: {said.state if said else 'nobody was asked'}"}


def answer_to(record: InterruptRecord, transcripts: dict[str, Transcript]) -> Answer | None:
    """The recorded answer to a question; a rejection where it asks something else; None where it is no replay's."""
    transcript = transcripts.get(record.session_id)
    call = transcript.calls.get(record.interrupt.call_id or "") if transcript else None
    if call is None or record.agent != AGENT:
        return None
    asked = record.interrupt.action
    if asked is None or asked.digest != Action(tool=call.tool, arguments=call.arguments).digest:
        return Reject(reason="the record has another call here")
    if record.interrupt.addressed_to is Audience.COMPLETIONS:
        return Complete(value=call.result.get("content"))
    return Approve()
