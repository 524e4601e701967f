"""A parked run whose worker stays for the answers: in time, it goes on where it is; else any worker goes on with it.

The pause is stored first, as every other one, and nothing is held while its worker stays: whatever becomes of the
worker, the answers find the run. To go on, the run is leased anew, as by any other worker, and whoever is first has it.
A worker that leases a run for which one of its own handlers stays hands it to that handler.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

from .._async.inbox import Inbox
from .._async.run import Run
from ..core.ids import new_nonce
from ..core.states import RunState
from ..errors import Paused, WaitTimeout
from ..store.commands.address import read_run_address
from ..store.commands.reads import read_run
from ..store.commands.runs import Leased, lease
from ._contract import Framework, Parked, confirmed, current_run, pause

_Place = tuple[str, int]
"""A run and the number of its pause."""

_STAYING: Final[dict[_Place, asyncio.Future[Leased]]] = {}
"""Where the handlers of this process that stay are given their leases."""


async def stay(run: Run[Any], framework: Framework, parked: Parked, seconds: float) -> bool:
    """Whether a run that has just been parked is here again, with its answers, within so many seconds.

    If so, it goes on in this very handler. If not, it is paused: the handler has to end. A run that nobody renews, or
    that has a journal, is not parked here, and `False` is all that happens: what its handler has recorded is of the
    old lease. Raises what `drive` raises for a pause that cannot be stored.
    """
    if run._renewal is None or run._made is not None:  # noqa: SLF001 - the same house
        return False
    until = monotonic() + seconds
    with _expected((run.id, run.seq + 1)) as handed:
        told = await pause(run, framework, parked)
        leased = await _leased(run, told.interrupt_ids, handed, until)
    if leased is None:
        return False
    await _go_on(run, leased)
    return True


def hand_over(run: Run[Any]) -> None:
    """Nothing, or `Paused` where a handler of this worker stays for just this run: it is that one's then."""
    handed = _STAYING.get((run.id, run.seq))
    if handed is not None and not handed.done() and handed.get_loop() is asyncio.get_running_loop():
        handed.set_result(run._leased)  # noqa: SLF001 - the same house
        raise Paused(run.id)


@contextmanager
def _expected(place: _Place) -> Iterator[asyncio.Future[Leased]]:
    handed: asyncio.Future[Leased] = asyncio.get_running_loop().create_future()
    _STAYING[place] = handed
    try:
        yield handed
    finally:
        _STAYING.pop(place, None)


async def _leased(
    run: Run[Any], asked: tuple[str, ...], handed: asyncio.Future[Leased], until: float
) -> Leased | None:
    """The run's next lease, once its questions are answered; None where they are not, or another worker has it."""
    link = run._link  # noqa: SLF001 - the same house
    inbox, p = Inbox(link), run._leased.partition  # noqa: SLF001
    holder = run._leased.text("holder")  # noqa: SLF001
    try:
        for one in asked:
            await inbox.wait(one, max(0, until - monotonic()))
    except WaitTimeout:
        return handed.result() if handed.done() else None
    a = await link.fetch(read_run_address(p, run.id))
    (found,) = await link.run_all(
        lease(
            p, [(run.id, a.pool, a.session)], nonces=[new_nonce()], holder=holder,
            span=link.settings.lease, seq=str(run.seq + 1),
        )
    )  # fmt: skip
    if isinstance(found, BaseException):
        raise found
    if found is not None:
        return found
    now = await link.fetch(read_run(p, run.id))
    if now is None or now.state is not RunState.LEASED or now.holder != holder:
        return None
    # It is this worker that was quicker: another of its tasks is about to hand it over.
    done, _ = await asyncio.wait([handed], timeout=link.settings.lease.total_seconds())
    return handed.result() if done else None


async def _go_on(run: Run[Any], leased: Leased) -> None:
    """Puts the new lease in the place of the one that ended with the pause. Raises `StaleLease`, `Corrupt` ..."""
    old, given = run._renewal, run.input  # noqa: SLF001 - the same house
    assert old is not None  # noqa: S101 - its caller looked
    vars(run).update(vars(Run[Any](run._link, leased)))  # noqa: SLF001
    run._renewal = old.renewer.add(leased, old.lost)  # noqa: SLF001
    await run.load()
    run.input = given
    await confirmed(run)


# The pause to come -----------------------------------------------------------------------------------------------

_STARTS: Final[ContextVar[tuple[str, str] | None]] = ContextVar("broker_adapter_starts", default=None)


@contextmanager
def starts(session: str, run_id: str) -> Iterator[None]:
    """What is called in this block is the first segment of a run that no worker holds, and that is not stored yet."""
    reset = _STARTS.set((session, run_id))
    try:
        yield
    finally:
        _STARTS.reset(reset)


def next_pause() -> tuple[str, str, int]:
    """Session, run and number of the pause that comes next. Raises `UnknownId` where there is no run."""
    new = _STARTS.get()
    if new is not None:
        return (*new, 1)
    run = current_run()
    return run.session_id, run.id, run.seq + 1
