# Generated from broker/interop/adk/_async/codeact.py by tests/tools/unasync.py (make sync): do not edit.
"""A CodeAct agent in the hands of a worker: one script, one call at a time, frozen whole before each."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....core import questions
from ....core.dispositions import (
    Raise,
    ResolutionRecord,
    Resolved,
    UnknownDisposition,
)
from ....core.entries import Result
from ....core.limits import JSON
from ....core.models import Action, InterruptState
from ....core.states import CallState
from ....core.toolcalls import ToolCall
from ....core.tools import Tool
from ....errors import Corrupt, InvalidInput, Paused
from ....store.commands.entries import read_entry
from ..decisions import Policy
from ..keeping import Rewrite, ahead, check_roster, found, heard, record_of, written
from ..shapes import Checkpoint, PendingCall
from ._runtime import Run


class CodeAct:
    """One agent's script in a leased run: `pending` is where it was frozen, `resume` what its call came to.

    `policy` says which calls are asked about (`"never"`, `"always"`, `{"per_tool": [...]}`), beside tools that are
    gated themselves. `rewrite` changes arguments before anybody is asked: what runs is what was approved, and where
    it gives other arguments after the decision, that is void and the call is asked about again (A28).
    """

    def __init__(
        self,
        run: Run[Any],
        tools: Mapping[str, Any] | Sequence[Any],
        *,
        policy: JSON = "never",
        rewrite: Rewrite | None = None,
    ) -> None:
        self._run = run
        self._rewrite = rewrite
        self._tools: dict[str, Tool] = Policy.parse(policy).apply(tools)
        self._heard = heard(run.checkpointed)
        self.roster: tuple[str, ...] = tuple(sorted(self._tools))
        self.pending: Checkpoint | None = found(run.seq, run.checkpointed, run.state, run.input)

    def resume(self) -> ResolutionRecord:
        """What the pending call came to: `Value` or `Raise`. Continue the script from `pending.snapshot` with it.

        A result on record comes back and its tool does not run; a call that was begun by a worker that died runs
        again under its key, unless its tool says otherwise; one that waits is asked about, once: then this raises
        `Paused`, and the handler is entered again. Raises `RosterChanged`, and `Corrupt` for a disposition that this
        release does not know and nobody has given up; in both cases the checkpoint is kept.
        """
        checkpoint = self.pending
        if checkpoint is None:
            raise InvalidInput("pending", "is none: this run has no checkpoint", "a run with one")
        check_roster(self._run.id, checkpoint, self.roster)
        match checkpoint.disposition:
            case UnknownDisposition(kind=kind):
                return self._given_up(checkpoint.call.entry, kind)
            case Resolved(record=record):
                return record
            case _:
                return self._result(checkpoint)

    def call(
        self, call: PendingCall, *, snapshot: bytes, iteration: int = 0, transcript: Sequence[JSON] = ()
    ) -> ResolutionRecord:
        """What a tool call of the script came to, with the script frozen before it: `Value` or `Raise`.

        The checkpoint takes the place of the one before it. Raises `Paused` where somebody must be asked or waited
        for. Failures and time-outs of the tool are a `Raise` (A24).
        """
        tool = self._tools.get(call.tool)
        if tool is None:
            return Raise(error=f"there is no tool {call.tool}")
        self.pending = Checkpoint(
            iteration=iteration, transcript=list(transcript), snapshot=snapshot, call=call,
            disposition=ahead(tool), tool_roster=self.roster,
        )  # fmt: skip
        self._run.checkpoint(written(self.pending, self._run.seq, self._heard))
        return self._result(self.pending)

    def queued(self) -> tuple[JSON, ...]:
        """The inputs that came since the last checkpoint, oldest first: put them into the transcript (A21).

        They count as heard from the next `call` on; before that they come again at every entry.
        """
        new = (self._run.said())[heard(self._run.checkpointed) :]
        self._heard = heard(self._run.checkpointed) + len(new)
        return new

    @property
    def _key(self) -> str:
        return self._run._leased.partition.key("state", self._run.id)  # noqa: SLF001 - the same house

    def _given_up(self, entry: str, kind: str) -> ResolutionRecord:
        """How somebody has ended a call whose disposition is not known."""
        for one in self._run.interrupts:
            if one.interrupt.call_id == entry:
                return record_of(Result.of(one))
        raise Corrupt(self._key, f"its disposition {kind!r} is not known to this release")

    def _result(self, checkpoint: Checkpoint) -> ResolutionRecord:
        call = checkpoint.call
        if not isinstance(call.args, dict):
            return Raise(error=f"the arguments of {call.tool} are no object")
        arguments = self._rewrite(call.tool, dict(call.args)) if self._rewrite is not None else call.args
        action = Action(tool=call.tool, arguments=arguments)
        self._ask_again_where_changed(action, checkpoint)
        asked = ToolCall.of(call.entry, action.tool, action.arguments)
        (result,) = self._run._journal.calls([asked], self._tools, checkpoint.transcript)  # noqa: SLF001
        return record_of(result)

    def _ask_again_where_changed(self, action: Action, checkpoint: Checkpoint) -> None:
        """An approval is void when the arguments changed after it: what would run now is another question."""
        run, entry = self._run, checkpoint.call.entry
        asked = next((one.interrupt.action for one in run.interrupts if one.interrupt.call_id == entry), None)
        if asked is None or asked.digest == action.digest:
            return
        read = read_entry(run._leased.partition, run.id, entry)  # noqa: SLF001 - the same house
        if (run._link.fetch(read)).state != CallState.AWAITING_CONFIRMATION:  # noqa: SLF001
            return  # it was begun: the journal holds it to what it was begun with
        again = questions.approval(self._tools[action.tool], action, entry)
        run.suspend(again, state=InterruptState(context_snapshot=checkpoint.transcript))
        raise Paused(run.id)
