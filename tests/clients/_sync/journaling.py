# Generated from tests/clients/_async/journaling.py by tests/tools/unasync.py (make sync): do not edit.
"""An agent whose attempts a test makes one by one, its model and its tools' bookkeeping, in this colour."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from broker import Broker, InterruptRecord, RunRecord, RunState
from tests.clock import Clock

from ._runtime import Run

MINUTE = timedelta(minutes=1)


class Died(BaseException):
    """The worker is gone: nothing is written any more, and its lease runs out."""


class Agent:
    """One run and its handler. `go` makes one attempt; before it, lease and back-off of the last one are over."""

    def __init__(self, broker: Broker, clock: Clock, handler: Callable[[Run[Any]], Any]) -> None:
        self.broker = broker
        self.clock = clock
        self.handler = handler
        self.run_id = ""
        self.error: BaseException | None = None
        self.did: list[Any] = []
        self._run: Run[Any] | None = None

    def start(self, value: Any = "hello") -> RunState:
        """Starts the run and makes its first attempt."""
        self.run_id = (self.broker.start("airline", value, session="s")).run_id
        return self.go()

    def go(self) -> RunState:
        """One attempt; the state of the run after it."""
        self.clock.advance(MINUTE)
        self.error = None
        try:
            with self.broker.take(self.run_id) as run:
                self._run = run
                run.finish(self.handler(run))
        except (Exception, Died) as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        return (self.record()).state

    def die(self) -> None:
        """Ends this attempt as a killed process does."""
        assert self._run is not None
        self._run.is_held = False
        raise Died

    def stop_renewing(self) -> None:
        """The lease of this attempt is renewed no more, and nobody tells the attempt."""
        assert self._run is not None
        renewal = self._run._renewal
        assert renewal is not None
        renewal.remove()

    def record(self) -> RunRecord:
        """The run as it is stored."""
        return self.broker.runs.get(self.run_id)

    def result(self) -> Any:
        """What the run finished with."""
        return (self.record()).result

    def asked(self) -> dict[str | None, InterruptRecord]:
        """The open questions by their call."""
        return {one.interrupt.call_id: one for one in (self.broker.inbox.list()).items}

    def answer(self, call: str, answer: Any) -> str:
        """What became of an answer to the question about a call."""
        return (self.broker.inbox.answer((self.asked())[call].id, answer)).code


class Model:
    """A model that says what was written for it: turn by turn, by how often it has answered before."""

    def __init__(self, *turns: Sequence[dict[str, Any]]) -> None:
        self.turns = turns
        self.asked = 0

    def ask(self, messages: list[Any]) -> dict[str, Any]:
        """The next turn."""
        self.asked += 1
        said = sum(message["role"] == "assistant" for message in messages)
        if said < len(self.turns):
            return {"role": "assistant", "tool_calls": list(self.turns[said])}
        return {"role": "assistant", "content": "done"}


def loop(run: Run[Any], model: Model, tools: Sequence[Any]) -> list[Any]:
    """The loop people have already. Gives what the tools said to the model."""
    messages: list[Any] = [{"role": "user", "content": run.input}]
    while (turn := run.step(model.ask, messages)).get("tool_calls"):
        messages += [turn, *run.calls(turn["tool_calls"], tools, context=messages)]
    return [message["content"] for message in messages if message["role"] == "tool"]


def talking(*turns: Sequence[dict[str, Any]], tools: Sequence[Any]) -> Callable[[Run[Any]], Any]:
    """A handler: that loop with these turns and tools."""
    model = Model(*turns)

    def handler(run: Run[Any]) -> list[Any]:
        return loop(run, model, tools)

    return handler
