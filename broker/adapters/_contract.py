"""What every adapter does: describe, park what can be read back, and go on under the lease; and what it needs for that.

The state of a framework is a value: it rides in the suspension, with its description before it, and nowhere else. The
run is pinned to that description (its build), so that only workers that declare the same are given it. The answers are
spent when the resumed run is stored, not before: a worker that dies in between has changed nothing.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from .._async.client import AsyncBroker
from .._async.link import Link
from .._async.run import Run
from .._async.runs import Runs
from ..core.answers import Answer, Approve, Edit
from ..core.digest import canonical_json, content_digest
from ..core.entries import Result
from ..core.kinds import ApprovalPending
from ..core.limits import JSON, LIMITS
from ..core.models import Interrupt, InterruptState
from ..core.outcomes import Accepted, Conflict, Replayed
from ..core.records import InterruptRecord, Resolution, RunRecord
from ..core.states import CLOSED, Mode, RunState
from ..errors import (
    BuildMismatch,
    Corrupt,
    InvalidInput,
    MissingExtra,
    Paused,
    Refused,
    StaleLease,
    Unavailable,
    UnknownId,
    UnsupportedVersion,
)
from ..store.commands.reads import read_active
from ..store.commands.runs import lease

FRAMEWORK_ID: Final = "framework_id"
"""Under this name the metadata of an interrupt hold the id that its framework knows it by."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a frozen state is of, and what a worker declares that can go on from it.

    `version` is as much of the framework's version as its states depend on, `schema` that of the state's own format,
    `digest` stands for the configuration (tools, nodes, types): see `digest_of`.
    """

    framework: str
    version: str
    schema: str
    agent: str
    digest: str

    @property
    def build(self) -> str:
        """The build that runs are pinned to: the framework's name and a hash of everything else."""
        return f"{self.framework[:40]}-{digest_of(asdict(self))}"

    def __str__(self) -> str:
        return f"{self.framework} {self.version} ({self.agent}, {self.digest})"


@dataclass(frozen=True, slots=True)
class Parked:
    """What a framework's run came to that has paused: its state, and what it asks.

    Each interrupt has the `call_id` and `agent_path` that the framework knows it by; together they tell the questions
    of one pause apart.
    """

    state: bytes = field(repr=False)
    interrupts: tuple[Interrupt, ...]
    mode: Mode = Mode.ALL
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """What a framework's run came to that has ended: its result."""

    result: JSON = field(default=None, repr=False)


Outcome: TypeAlias = Parked | Finished


@dataclass(frozen=True, slots=True)
class Answered:
    """How one question ended, as the framework is told: the `id` is its own, `path` the agents that asked.

    `key` makes a repeat of what was approved harmless: it is the same on every attempt.
    """

    id: str
    path: tuple[str, ...]
    interrupt: Interrupt
    resolution: Resolution
    key: str
    told: Result = field(repr=False)

    @property
    def answer(self) -> Answer | None:
        """What was answered; None where it ended without one (expired, superseded)."""
        return self.resolution.answer

    @property
    def text(self) -> str:
        """What a model is told of it: who refused and why, that nobody answered, or the value that was given."""
        return self.told.message()

    def to_json(self) -> dict[str, JSON]:
        """The answer as a map that a framework can carry to its tool.

        `refused` is why not, as a model is told, and None where it may go on: with `arguments` (edited, or as shown) or
        with the `value` that was given. `key` makes a repeat harmless, `by` says who it was.
        """
        allowed = isinstance(self.answer, Approve | Edit)
        action = self.interrupt.action
        shown = None if action is None else action.arguments
        return {
            "refused": None if allowed or self.told.failure is None else self.text,
            "arguments": self.answer.arguments if isinstance(self.answer, Edit) else shown,
            "value": self.told.value,
            "key": self.key,
            "by": None if self.resolution.by is None else self.resolution.by.id,
        }


class Framework(Protocol):
    """What an adapter is to the broker."""

    @property
    def described(self) -> Described:
        """What its states are of."""
        ...

    async def start(self, given: JSON) -> Outcome:
        """The first segment of a run, from its input."""
        ...

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next segment: all questions of the last pause have ended. It may be the second time, after a crash."""
        ...

    async def read_back(self, parked: Parked) -> None:
        """Nothing, or whatever the framework's own loader raises for a state that it could not go on from."""
        ...


async def drive(run: Run[Any], framework: Framework, *, accepts: Sequence[str] = ()) -> JSON:
    """The result of a leased run, which ends with it, or `Paused` when it has parked again.

    For a worker's handler. `accepts` are further builds whose states this worker can read. Raises `BuildMismatch`,
    before anything ran, for a state that is of another one; the record stays.
    """
    with here(run):
        if run.state is None or run.state.opaque is None:
            outcome = await framework.start(run.input)
        else:
            body = opened(run.id, run.state, framework.described, accepts)
            await confirmed(run)
            outcome = await framework.resume(body, answers_of(run))
    if run.is_paused:  # by the framework itself: nobody answered while it stayed
        raise Paused(run.id)
    if isinstance(outcome, Finished):
        return outcome.result
    await pause(run, framework, outcome)
    raise Paused(run.id)


async def pause(run: Run[Any], framework: Framework, parked: Parked) -> Accepted | Replayed:
    """Parks a leased run, whose lease ends with it: from now on it is paused, whatever its handler does."""
    state = await frozen(framework, parked)
    asked = named(parked.interrupts, run.seq + 1)
    told = await run.suspend(
        *asked, state=state, mode=parked.mode, keep=parked.keep, build=framework.described.build
    )
    run._fault = Paused(run.id)  # noqa: SLF001 - the same house
    return told


async def confirmed(run: Run[Any]) -> None:
    """Returns when the answers that a leased run goes on from are as durable as the namespace keeps things (P1).

    Its lease came after them, so it is asked for again, and this time waited for. Raises `StaleLease` where another
    has the run, and `Unavailable` where it took too long: the lease will run out, and nothing was done.
    """
    link, leased = run._link, run._leased  # noqa: SLF001 - the same house
    again = lease(
        leased.partition, [(run.id, leased.pool, run.session_id)], nonces=[leased.token.nonce],
        holder=leased.text("holder"), span=link.settings.lease, seq=str(run.seq),
    )  # fmt: skip
    try:
        found = await link.run(again._replace(confirm=True))
    except Refused as refused:
        missed = refused.outcome.code
    else:
        if found is None or found.token != leased.token:
            raise StaleLease(run.id)
        return
    raise Unavailable(f"the answers were not confirmed: {missed}", unsure=True)


async def park(
    broker: AsyncBroker,
    framework: Framework,
    parked: Parked,
    *,
    session: str,
    key: str,
    queue: str = "agents",
) -> Accepted | Replayed:
    """Stores the first pause of a run that no worker held; any worker that declares the same goes on with it.

    The same pause under the same key again is `Replayed`. Raises `InvalidInput`, `Refused`, and whatever the
    framework's loader raises for a state that cannot be read back: then nothing was stored and nobody is asked.
    """
    about = framework.described
    state = await frozen(framework, parked)
    return await broker.suspend(
        about.agent, *named(parked.interrupts, 1), session=session, state=state, key=key, queue=queue,
        build=about.build, mode=parked.mode,
    )  # fmt: skip


async def supersede(
    link: Link, session: str, agent: str, *, but: str = "", reason: str = "new input"
) -> None:
    """Ends the agent's other paused runs of a session as superseded: something new has come in their place.

    Raises `Refused` with `Conflict` where one has its answers already and is ready or at work: let it end first.
    """
    for run in await open_runs(link, session, agent):
        if run.id == but:
            continue
        if run.state not in (RunState.WAITING, RunState.DEAD):
            raise Refused(Conflict(reason=f"run {run.id} of this session goes on with its answers"))
        outcome = await Runs(link).withdraw(run.id, seq=run.seq, reason=reason, superseded=True)
        if not outcome.ok:
            raise Refused(outcome)


async def open_runs(link: Link, session: str, agent: str) -> list[RunRecord]:
    """The agent's runs of a session that have paused and not ended."""
    await link.open()
    found = await link.fetch(read_active(link.space.of_session(session), session))
    runs = [await Runs(link).get(run_id) for run_id in found]
    return [run for run in runs if run.agent == agent and run.state not in CLOSED]


async def frozen(framework: Framework, parked: Parked) -> InterruptState:
    """The state to be stored, once the framework's own loader has read it back."""
    await framework.read_back(parked)
    about = framework.described
    head = canonical_json(asdict(about))
    return InterruptState(framework=about.framework, opaque=head + b"\n" + parked.state)


def opened(run_id: str, state: InterruptState, here: Described, accepts: Sequence[str] = ()) -> bytes:
    """The framework's bytes behind a stored state. Raises `BuildMismatch`, and `Corrupt` for what is none."""
    head, _, body = (state.opaque or b"").partition(b"\n")
    try:
        parked = Described(**json.loads(head))
    except (ValueError, TypeError):
        raise Corrupt(f"state of {run_id}", "it was not parked by an adapter") from None
    if parked != here and parked.build not in accepts:
        raise BuildMismatch(run_id, str(parked), str(here))
    return body


def named(interrupts: Sequence[Interrupt], seq: int) -> tuple[Interrupt, ...]:
    """The questions of a pause under call ids that no other pause or agent of the run has.

    Ids of frameworks are those of models, which give them again. Raises `InvalidInput` where two questions of one
    pause have the same agents and id: one answer would be taken for both.
    """
    found: dict[str, Interrupt] = {}
    for one in interrupts:
        name = call_name(seq, one.agent_path, one.call_id or "")
        if name in found or not one.call_id:
            raise InvalidInput(
                "interrupts", "holds two of one agent and id, or one without", "ids that differ"
            )
        kind = ApprovalPending(tool_use_id=name) if isinstance(one.kind, ApprovalPending) else one.kind
        metadata = {**one.metadata, FRAMEWORK_ID: one.call_id}
        found[name] = one.model_copy(update={"call_id": name, "kind": kind, "metadata": metadata})
    return tuple(found.values())


def call_name(seq: int, path: Sequence[str], framework_id: str) -> str:
    """The call id of what a framework asks: pause, agents, the framework's id; a hash where that is too long."""
    name = "/".join((str(seq), *path, framework_id))
    if len(name) <= LIMITS.id_chars:
        return name
    return f"{seq}/{content_digest(name.encode())[:32]}"


def answers_of(run: Run[Any]) -> tuple[Answered, ...]:
    """How the questions of a run's last pause ended, in the order they were asked."""
    return tuple(_answered(run.id, one) for one in run.interrupts if one.resolution is not None)


def _answered(run_id: str, one: InterruptRecord) -> Answered:
    asked, ended = one.interrupt, one.resolution
    assert ended is not None  # noqa: S101 - its caller looked
    known = asked.metadata.get(FRAMEWORK_ID, asked.call_id or "")
    key = f"{run_id}:{asked.call_id}"
    return Answered(str(known), tuple(asked.agent_path), asked, ended, key, Result.of(one))


# The run that is being worked on ---------------------------------------------------------------------------------

_HERE: Final[ContextVar[Run[Any] | None]] = ContextVar("broker_adapter_run", default=None)


@contextmanager
def here(run: Run[Any]) -> Iterator[None]:
    """What is called in this block finds the run by `current_run`."""
    reset = _HERE.set(run)
    try:
        yield
    finally:
        _HERE.reset(reset)


def current_run() -> Run[Any]:
    """The run that a worker is going on with, for tools and nodes. Raises `UnknownId` where there is none."""
    run = _HERE.get()
    if run is None:
        raise UnknownId("current run", "here")
    return run


def effect_key(call_id: str, path: Sequence[str] = ()) -> str:
    """What makes the effect of one call of the current run harmless to repeat: an idempotency key.

    The same for every attempt and every worker. It is that of the approved question where `call_id` is the id that
    the framework knows it by, else one of run, agents and id. `path` are the agents that make the call, outermost
    first: nested agents may give the same id, and have keys of their own. Raises `InvalidInput` where several agents
    asked about this id, and none is named.
    """
    run = current_run()
    asked = [one for one in answers_of(run) if one.id == call_id and (not path or one.path == tuple(path))]
    if len(asked) > 1:
        raise InvalidInput(
            "path", "is missing: several agents have a call of this id", "the names of its agents"
        )
    return asked[0].key if asked else ":".join((run.id, "/".join((*path, call_id))))


# Packages --------------------------------------------------------------------------------------------------------


class Package(NamedTuple):
    """A package that an adapter needs: from version `least` on, below major version `below`."""

    name: str
    least: tuple[int, ...]
    below: int

    @property
    def allowed(self) -> str:
        """The range as `pip` spells it."""
        return f">={'.'.join(map(str, self.least))},<{self.below}"


def require(extra: str, needed_for: str, *packages: Package) -> dict[str, str]:
    """The versions of an adapter's packages. Raises `MissingExtra`, and `UnsupportedVersion` naming the range."""
    found = {}
    for one in packages:
        try:
            found[one.name] = version(one.name)
        except PackageNotFoundError:
            raise MissingExtra(extra, needed_for) from None
        numbers = _numbers(found[one.name])
        if not (one.least <= numbers < (one.below,)):
            raise UnsupportedVersion(one.name, found[one.name], one.allowed, needed_for)
    return found


def _numbers(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def digest_of(configuration: JSON) -> str:
    """Twelve characters that stand for a configuration: names of tools, nodes and types, say."""
    return content_digest(canonical_json(configuration))[:12]
