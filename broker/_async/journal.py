"""The journal of one attempt: what ran is recorded and comes back, what must be asked is asked once, all together.

A handler is entered again from the top after every pause and crash. Calls are matched by their id, steps by their
place (a path of counters that does not depend on timing) or key; an entry that differs from what was recorded raises
`JournalMismatch`, and nothing runs. How tool calls run is told in `calling`, what pauses and ends an attempt in
`attempt`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.entries import Codec, Failure, Result, own, plain, read_result, step_digest
from ..core.limits import JSON, check_id, check_json
from ..core.models import Audience, Interrupt, InterruptState
from ..core.places import Places
from ..core.toolcalls import ToolCall
from ..core.tools import Tool, running_call
from ..errors import InvalidInput
from ..store.commands import entries
from ..store.commands.entries import STEP, Entry, Told
from ._runtime import ORDERED, invoke, is_failure, together, worker
from .attempt import Attempt, Parked, Question
from .calling import Calling

log = logging.getLogger("broker")


class Journal:
    """Begins and ends the entries of one leased run; made by `Run`."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._attempt = Attempt(run, self._ask)
        self._calling = Calling(run, self._attempt)
        self._places: Places | None = None
        self._context: Sequence[JSON] = ()

    @property
    def _here(self) -> Places:
        if self._places is None:
            self._places = Places(f"{self._run.cut}/" if self._run.cut else "", ordered=ORDERED)
        return self._places

    # Steps -----------------------------------------------------------------------------------------------------

    async def step(
        self, function: Callable[..., Any], args: Any, kwargs: Any, key: str | None, codec: Codec
    ) -> Any:
        """What `function` returned, now or when it was recorded."""
        taken = self._here.take(worker()) if key is None else ""
        place = taken if key is None else f"k:{check_id('key', key)}"
        await self._attempt.check()
        name = STEP + place
        if not self._attempt.claim(name):
            raise InvalidInput("key", "was used before in this attempt", "one key for each step")
        digest = step_digest(function, args, kwargs)
        async with self._attempt.running():
            begun = await self._calling.begin(Entry(name, digest, digest, again=True, place=taken))
            if begun.told is Told.STORED:
                return codec.read(read_result(begun.detail).value)
            try:
                with self._here.inside(place):
                    # Changes in place would be seen now and not when the result comes back.
                    written = codec.write(await invoke(function, own(args), own(kwargs), None))
                self._calling.check_size(Result(value=written))
            except BaseException as error:
                # Not recorded: the attempt fails, and the next one makes the step again.
                if is_failure(error):
                    self._attempt.raised(error)
                raise
            stored = await self._calling.end(name, Result(value=written))
            return codec.read(stored.value if stored is not None else written)

    # Calls -----------------------------------------------------------------------------------------------------

    async def calls(
        self, asked: Sequence[ToolCall], tools: Mapping[str, Tool], context: Sequence[JSON]
    ) -> list[Result]:
        """How some calls of one turn ended; raises `Paused` once where some of them must be asked or waited for."""
        places = ["" if one.entry else self._here.take(worker()) for one in asked]
        names = [one.entry or f"{at}:{one.name[:200]}" for one, at in zip(asked, places, strict=True)]
        await self._attempt.check()
        self._check_nested(asked, tools)
        self._context = context or self._context
        made = [
            partial(self._one, one, tools.get(one.name), name, at, self._attempt.claim(name))
            for one, name, at in zip(asked, names, places, strict=True)
        ]
        async with self._attempt.running():
            results = await together(made)
            faults = [one for one in results if isinstance(one, BaseException)]
            for fault in faults:
                if not isinstance(fault, Parked):
                    raise fault
            if faults:
                await self._attempt.pause()
            return [one for one in results if isinstance(one, Result)]

    async def _one(self, asked: ToolCall, tool: Tool | None, name: str, place: str, new: bool) -> Result:  # noqa: FBT001
        if asked.fault is not None:
            return Result(failure=asked.fault)
        if not new:
            return Result(failure=Failure(kind="InvalidCall", text="its id was used before in this run"))
        if tool is None or not tool.fits(asked.arguments):
            return await self._calling.unfit(tool, asked, name, place)
        with self._here.inside(f"c:{name}"):
            return await self._calling.call(tool, asked.arguments, name, place)

    def _check_nested(self, asked: Sequence[ToolCall], tools: Mapping[str, Tool]) -> None:
        """A tool that waits for somebody cannot be called by another one: that one would have to run again."""
        outer = running_call()
        if outer is None or outer.run_id != self._run.id:
            return
        for one in asked:
            if one.name in tools and tools[one.name].asks:
                raise InvalidInput(
                    f"tools.{one.name}", "may pause, and is called inside a tool", "a handler's call"
                )

    # Pausing and cutting ---------------------------------------------------------------------------------------

    async def _ask(self, parked: Sequence[Question]) -> None:
        """Makes the one suspension. More questions than one may have wait for the next: jobs under way come first."""
        kept = [one for one in parked if isinstance(one, str)]
        asked = [one for one in parked if isinstance(one, Interrupt)]
        asked.sort(key=lambda one: one.addressed_to is not Audience.COMPLETIONS)
        most = self._run._link.settings.limits.interrupts_per_suspension - len(kept)  # noqa: SLF001
        state = InterruptState(context_snapshot=plain(list(self._context)))
        await self._run._suspend(*asked[:most], state=state, keep=kept)  # noqa: SLF001 - the same house

    async def cut(self, state: JSON) -> None:
        """Puts a checkpoint in the place of the entries so far."""
        await self._attempt.check()
        if self._attempt.is_busy:
            raise InvalidInput(
                "checkpoint", "is made while calls of the run are under way", "a place between calls"
            )
        number, written = self._run.cut + 1, check_json("state", plain(state))
        self._calling.check_size(Result(value=written))
        async with self._attempt.running():
            await self._calling.write(entries.cut(self._run._leased, number, written))  # noqa: SLF001
        self._run.cut, self._run.checkpointed = number, written
        self._places = None
        self._attempt.forget_names()
