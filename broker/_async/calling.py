"""One tool call of a run: written ahead, asked about, run, recorded; and what becomes of one whose worker died."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..core import questions
from ..core.answers import Approve
from ..core.entries import Failure, Result, mark_token, plain, read_result, write_result
from ..core.limits import JSON, check_json
from ..core.models import Action, Interrupt
from ..core.states import CallState
from ..core.toolcalls import ToolCall
from ..core.tools import CURRENT, Call, Done, Doubt, Pending, Tool
from ..errors import (
    AttemptOver,
    BrokerError,
    Corrupt,
    InvalidInput,
    JournalMismatch,
    Paused,
    Refused,
    RosterMismatch,
    StaleLease,
    Unavailable,
)
from ..store.commands import entries
from ..store.commands.entries import Begun, Entry, Told
from ..store.commands.values import Command
from ._runtime import invoke, is_failure
from .answered import Answered
from .attempt import Attempt

log = logging.getLogger("broker")

T = TypeVar("T")

LOOKS = 8
SLACK_BYTES = 1024
"""What the record of a result may take beyond the value in it."""


class Calling:
    """Runs the calls of one attempt."""

    def __init__(self, run: Any, attempt: Attempt) -> None:
        self._run = run
        self._link = run._link  # noqa: SLF001 - the same house
        self._leased = run._leased  # noqa: SLF001
        self._attempt = attempt
        self._answered = Answered(run)

    async def call(self, tool: Tool, arguments: dict[str, JSON], name: str, place: str) -> Result:
        """How a call ended. Raises `Parked` where somebody must be asked or waited for.

        `place` is where it stands, for one that has no id.
        """
        asked = Action(tool=tool.name, arguments=arguments)
        again = tool.verify is None and tool.on_doubt is Doubt.AGAIN
        approved = False
        for _ in range(LOOKS):
            running = self._answered.running(name, asked)
            token = mark_token(self._run.session_id, self._run.id, name)
            begun = await self.begin(
                Entry(name, asked.digest, running.digest, gated=tool.gated, long=tool.long_running,
                      interrupt=self._answered.interrupt(name), token=token, again=again, approved=approved,
                      place=place),
                self._answered.slot(name),
            )  # fmt: skip
            match begun.told:
                case Told.ASKED:
                    await self._learn(name, begun.detail.decode())
                case Told.DOUBT:
                    found = await self._doubt(tool, asked, running, name, begun)
                    if found is not None:
                        return found
                    again, approved = True, tool.verify is None
                case Told.RUN:
                    return await self._execute(tool, asked, running, name, begun)
                case _:
                    return await self._without_running(tool, asked, name, begun)
        raise self._attempt.end(
            Corrupt(self._leased.partition.key("calls", self._run.id), f"entry {name!r} keeps changing")
        )

    async def _without_running(self, tool: Tool, asked: Action, name: str, begun: Begun) -> Result:
        """What a call comes to that is not to run now."""
        match begun.told:
            case Told.STORED:
                return read_result(begun.detail)
            case Told.ASK:
                raise self._attempt.park(name, questions.approval(tool, asked, name))
            case Told.OPEN:
                raise self._attempt.park(name, begun.detail.decode())
            case Told.WAIT:
                raise self._attempt.park(name, questions.completion(tool, asked, name, begun.handle))
            case Told.CHANGED:
                found = self._answered.running(name, asked).digest
                raise self._attempt.end(JournalMismatch(self._run.id, name, begun.detail.decode(), found))
            case _:
                return await self._settled(name, begun.detail.decode())

    async def _settled(self, name: str, interrupt: str) -> Result:
        with self._ending():
            result = await self._answered.outcome(name, interrupt)
        return await self.end(name, result) or result

    async def _learn(self, call: str, interrupt: str) -> None:
        with self._ending():
            await self._answered.learn(call, interrupt)

    async def unfit(self, tool: Tool | None, asked: ToolCall, name: str, place: str) -> Result:
        """How a call ended that cannot be made: there is no such tool, or it takes other arguments."""
        p, run = self._leased.partition, self._run.id
        with self._ending():
            known = await self._link.fetch(entries.read_entry(p, run, name))
        if known.result is not None or known.state == CallState.RESOLVED:
            tool = tool or Tool(asked.name, print)  # it has its result already, and does not run
        if known.state == "":
            text = f"there is no tool {asked.name}" if tool is None else f"{asked.name} takes other arguments"
            result = Result(failure=Failure(kind="InvalidCall", text=text))
            digest = Action(tool=asked.name, arguments=asked.arguments).digest
            return await self.end(name, result, refused=digest, place=place) or result
        if tool is None:
            raise self._attempt.end(RosterMismatch(run, name, asked.name))
        return await self.call(tool, asked.arguments, name, place)

    # Running ---------------------------------------------------------------------------------------------------

    async def _execute(self, tool: Tool, asked: Action, running: Action, name: str, begun: Begun) -> Result:
        if tool.gated or begun.detail:
            with self._ending():
                self._answered.check(name, asked, running, begun.verdict)
        made = await self._made(tool, running, name, begun)
        return await self._end_call(tool, asked, name, made)

    async def _end_call(self, tool: Tool, asked: Action, name: str, made: Result | Pending) -> Result:
        """Records what a call came to. Raises `Parked` for a job that was started, or was completed already."""
        handle: JSON = None
        if isinstance(made, Pending):
            handle = made.handle
            await self.write(entries.handle(self._leased, name, handle))
        elif (ended := await self.end(name, made)) is not None:
            return ended
        raise self._attempt.park(name, questions.completion(tool, asked, name, handle))

    async def _made(self, tool: Tool, running: Action, name: str, begun: Begun) -> Result | Pending:
        """What the function comes to, whatever it does: a value, a job that was started, or a failure."""
        run = self._run
        call = Call(
            name, tool.name, run.id, run.session_id, self._key(name), run.fence, begun.attempt, begun.token
        )
        reset = CURRENT.set(call)
        try:
            given = check_json(
                "arguments", running.arguments
            )  # a tool may change its own, and no record with it
            value = await invoke(tool.function, (), given, tool.timeout)
            if isinstance(value, Pending):
                return self._pending(tool, value)
            result = Result(value=plain(value))
            self.check_size(result)
            return result
        except BaseException as error:
            ours = isinstance(error, StaleLease) and error.run_id == self._run.id
            if (
                ours
                or isinstance(error, AttemptOver | Paused)
                or self._attempt.fault is not None
                or not is_failure(error)
            ):
                raise
            return Result(failure=Failure.of(error))
        finally:
            CURRENT.reset(reset)

    def _pending(self, tool: Tool, value: Pending) -> Pending:
        if not tool.long_running:
            raise InvalidInput(
                "result", "is Pending, and the tool is not long-running", "@long_running, or a value"
            )
        return Pending(check_json("handle", value.handle))

    def _key(self, name: str) -> str:
        """What a call is known by elsewhere: ids may come again behind a checkpoint, and are other calls then."""
        return f"{self._run.id}:{self._run.cut}/{name}" if self._run.cut else f"{self._run.id}:{name}"

    # Death while executing -------------------------------------------------------------------------------------

    async def _doubt(
        self, tool: Tool, asked: Action, running: Action, name: str, begun: Begun
    ) -> Result | None:
        """What a call comes to that was begun by a worker that is gone: None to run it again, or what stands for it."""
        if tool.verify is None:
            return await self._ask_about(tool, running, name, begun)
        made: Result | Pending
        try:
            match await invoke(tool.verify, (self._key(name),), {}, tool.timeout):
                case Done(result=value):
                    made = Result(value=plain(value))
                case Pending() as value:
                    made = self._pending(tool, value)
                case _:
                    return None
        except BaseException as error:
            # Nobody knows whether it ran: the attempt fails, and the next one asks again.
            if is_failure(error):
                self._attempt.end(error)
            raise
        return await self._end_call(tool, asked, name, made)

    async def _ask_about(self, tool: Tool, running: Action, name: str, begun: Begun) -> Result | None:
        about = Interrupt.doubt_id(name, begun.attempt)
        if not self._answered.interrupt(about):
            read = entries.read_entry(self._leased.partition, self._run.id, about)
            with self._ending():
                known = await self._link.fetch(read)
            if known.interrupt:
                await self._learn(about, known.interrupt)
        found = self._answered.settled(about)
        if found is None or found.resolution is None:
            raise self._attempt.park(name, questions.doubt(tool, running, name, begun.attempt))
        if isinstance(found.resolution.answer, Approve):
            return None
        result = Result.of(found)
        return await self.end(name, result) or result

    # The scripts -----------------------------------------------------------------------------------------------

    async def begin(self, entry: Entry, slot: str = "") -> Begun:
        """What becomes of an entry; it is written ahead where it is to run. `slot` is where its verdict lies."""
        return await self.write(entries.begin(self._leased, entry, self._link.settings.limits, slot))

    async def end(self, name: str, result: Result, refused: str = "", place: str = "") -> Result | None:
        """The result that is recorded from now on; None where a completion came before its question."""
        limits = self._link.settings.limits
        data = write_result(result, limits.record_bytes + SLACK_BYTES)
        ended = await self.write(entries.end(self._leased, name, data, refused, place))
        if ended.code == "completed":
            return None
        if ended.code == "replayed":
            return read_result(ended.stored)
        before = ended.size - len(data)
        if ended.entries == limits.journal_entries // 2 or before < limits.journal_bytes // 2 <= ended.size:
            log.warning(
                "run %s: its journal is half full (%d entries, %d bytes); cut it with run.checkpoint(state)",
                self._run.id, ended.entries, ended.size,
            )  # fmt: skip
        return result

    def check_size(self, result: Result) -> None:
        """Nothing, or `InvalidInput` for what is too large to be recorded."""
        write_result(result, self._link.settings.limits.record_bytes + SLACK_BYTES)

    async def write(self, command: Command[T]) -> T:
        """What a script says. Whatever goes wrong with it ends the attempt: nobody knows what is recorded.

        That includes what did not reach its class in time: a begin that may be lost again runs nothing (P1).
        """
        with self._ending():
            try:
                result: T = await self._link.run(command)
                return result
            except Refused as refused:
                missed = refused.outcome
            raise Unavailable(f"{command.script} was not confirmed: {missed.code}", unsure=True)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except BrokerError as error:
            self._attempt.end(error)
            raise
