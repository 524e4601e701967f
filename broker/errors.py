"""The errors, floor 0: what can go wrong, with one stable code for each, and the numbers the edges show for it.

    BrokerError
    ├── InvalidInput        a value breaks a limit or a shape; nothing was changed
    ├── UnknownId           no record with that id
    ├── Refused             an outcome other than success, where the caller asked for success or an error
    ├── AlreadyLeased       another worker has the run
    ├── StaleLease          the lease behind a write has ended or went to another worker
    ├── JournalMismatch     a run that was entered again asks for something else than it did before
    ├── JournalFull         a run's journal has no room for another entry
    ├── RosterMismatch      a call that was asked for or begun is of a tool that is not there any more
    ├── BuildMismatch       a run that is for another build of its agent
    ├── CallFailed          a call was rejected, expired, cancelled or failed
    ├── NotACall            there is no current call here
    ├── Corrupt             stored bytes cannot be read; they still count as active
    ├── WrongNamespace      the namespace on the server and the client's settings disagree
    ├── Unavailable         the server cannot be reached; `unsure` says whether a write may have happened
    ├── NotPermitted        the server refuses these credentials
    ├── Untrusted           a token, session or other signed text does not count
    ├── UnsuitableServer    the server cannot keep the promises (version, eviction, cluster)
    ├── NoServer            no server was given and none can be started here
    ├── MissingExtra        an optional package is needed
    ├── UnsupportedVersion  an optional package is there in a version that is not supported
    ├── OutOfMemory         the server is at its memory limit
    └── WaitTimeout         a wait ended before what it waited for

Beside them `Paused` and `AttemptOver`, which are no `Exception`: the handler of a run is to end.

Errors hold names, ids and faults, never arguments, payloads or secrets. This module imports nothing of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol


class Codes(NamedTuple):
    """What the edges answer for a code: the HTTP status and the exit code of the command line."""

    http: int
    exit_code: int


ERROR_CODES: Final[dict[str, Codes]] = {
    "broker_error": Codes(500, 1),
    "invalid": Codes(422, 2),
    "not_permitted": Codes(403, 3),
    "untrusted": Codes(401, 18),
    "unknown": Codes(404, 4),
    "stale_lease": Codes(409, 5),
    "already_leased": Codes(409, 16),
    "journal_mismatch": Codes(409, 12),
    "journal_full": Codes(507, 13),
    "roster_mismatch": Codes(409, 15),
    "build_mismatch": Codes(409, 17),
    "not_a_call": Codes(500, 1),
    "call_failed": Codes(500, 14),
    "wrong_namespace": Codes(409, 6),
    "unavailable": Codes(503, 7),
    "unsuitable_server": Codes(500, 8),
    "no_server": Codes(503, 8),
    "missing_extra": Codes(500, 8),
    "unsupported_version": Codes(500, 8),
    "corrupt": Codes(500, 9),
    "full": Codes(507, 10),
    "timeout": Codes(504, 11),
}
"""Code of an error -> what the edges answer."""

OUTCOME_CODES: Final[dict[str, Codes]] = {
    "accepted": Codes(200, 0), "replayed": Codes(200, 0), "parked": Codes(202, 0),
    "already_decided": Codes(409, 20), "expired": Codes(410, 21), "withdrawn": Codes(410, 22),
    "superseded": Codes(409, 23), "not_allowed": Codes(403, 24), "invalid": Codes(422, 25),
    "unknown": Codes(404, 26), "not_durable": Codes(503, 27), "conflict": Codes(409, 28), "full": Codes(507, 29),
}  # fmt: skip
"""Code of an outcome -> what the edges answer."""


class HasCode(Protocol):
    """Any outcome: it has a code of `OUTCOME_CODES` and says in a sentence what happened."""

    @property
    def code(self) -> str:
        """The stable word for what happened."""
        ...


class BrokerError(Exception):
    """Anything the broker raises. `code` is stable; `http` and `exit_code` are what the edges answer for it."""

    code: str = "broker_error"
    http: int = ERROR_CODES["broker_error"].http
    exit_code: int = ERROR_CODES["broker_error"].exit_code
    ok: bool = False
    """As outcomes have it, for lists that hold both."""
    says: str = ""
    """The sentence, with places for the facts."""

    def __init_subclass__(cls, code: str = "broker_error", says: str = "") -> None:
        cls.code, cls.says = code, says
        cls.http, cls.exit_code = ERROR_CODES[code]

    def __str__(self) -> str:
        return self.says.format_map(vars(self)) if self.says else super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        # The facts are attributes, not `args`: a worker process must be able to send an error to its parent.
        return _again, (type(self), vars(self))


def _again(kind: type[BrokerError], facts: Mapping[str, object]) -> BrokerError:
    error = kind.__new__(kind)
    vars(error).update(facts)
    return error


@dataclass(eq=False)
class InvalidInput(BrokerError, code="invalid", says="{field} {problem}; allowed: {allowed}."):
    """A value breaks a limit or a shape. It was checked before the first write, so nothing was changed (P12)."""

    field: str
    problem: str
    allowed: str

    def inside(self, outer: str) -> "InvalidInput":
        """The same fault, seen from the field that contains it."""
        joint = "" if self.field.startswith("[") or not self.field else "."
        return InvalidInput(f"{outer}{joint}{self.field}", self.problem, self.allowed)


@dataclass(eq=False)
class UnknownId(
    BrokerError, code="unknown", says="There is no {kind} {id!r}: it never was, or its retention has passed."
):
    """There is no such record, or no longer."""

    kind: str
    id: str


@dataclass(eq=False)
class Refused(BrokerError):
    """The broker said no where the caller asked for success or an error. `outcome` holds the facts."""

    outcome: HasCode

    def __post_init__(self) -> None:
        self.code: str = self.outcome.code
        codes = OUTCOME_CODES[self.code]
        self.http: int = codes.http
        self.exit_code: int = codes.exit_code
        self.says = "The broker refused ({code}): {outcome}."


@dataclass(eq=False)
class AlreadyLeased(BrokerError, code="already_leased", says="Run {run_id!r} is leased to {holder!r}."):
    """Another worker has the run. Nothing was changed; `holder` says who."""

    run_id: str
    holder: str


@dataclass(eq=False)
class StaleLease(
    BrokerError,
    code="stale_lease",
    says="The lease on run {run_id!r} is no longer held here; nothing was written. Stop working on it.",
):
    """The lease behind this write has ended or went to another worker. Stop working on the run.

    `repeated`: the call was sent a second time since its reply was lost, and the first may have been what ended it.
    """

    run_id: str
    repeated: bool = False


@dataclass(eq=False)
class JournalMismatch(
    BrokerError,
    code="journal_mismatch",
    says="Entry {entry!r} of run {run_id!r} differs from its record: digest {recorded!r} was recorded, {found!r} was "
    "asked for. Nothing ran; the run goes to the dead letters.",
):
    """A run that was entered again asks for something else than it did before, at the same place."""

    run_id: str
    entry: str
    recorded: str
    found: str


@dataclass(eq=False)
class JournalFull(
    BrokerError,
    code="journal_full",
    says="The journal of run {run_id!r} has no room ({entries} entries, {size} bytes): cut it with "
    "run.checkpoint(state).",
):
    """The journal of a run has no room for another entry. Nothing ran."""

    run_id: str
    entries: int
    size: int


@dataclass(eq=False)
class RosterMismatch(
    BrokerError,
    code="roster_mismatch",
    says="Call {entry!r} of run {run_id!r} was asked for or begun, and there is no tool {tool!r} any more: let a "
    "worker that has it go on with the run.",
):
    """A call that was asked for or begun is of a tool that the handler does not give any more. Nothing ran."""

    run_id: str
    entry: str
    tool: str


@dataclass(eq=False)
class BuildMismatch(
    BrokerError,
    code="build_mismatch",
    says="Run {run_id!r} needs {parked}, and this process has {here}; nothing ran and its record is as it was. "
    "Let one that has the same go on with it.",
):
    """A run is pinned to another build, or its frozen state is of another framework, version or configuration."""

    run_id: str
    parked: str
    here: str


@dataclass(eq=False)
class CallFailed(BrokerError, code="call_failed", says="The call of {tool!r} has no result ({kind}): {text}"):
    """A call was rejected, expired, cancelled or failed: `kind` says which, `text` what was said."""

    tool: str
    kind: str
    text: str


@dataclass(eq=False)
class NotACall(
    BrokerError,
    code="not_a_call",
    says="There is no current call: only a tool that a run's journal called has one.",
):
    """There is no current call here."""


class Paused(BaseException):
    """The run waits for somebody; the handler is to end now. Not an `Exception`, so none of those handlers eats it."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"Run {self.run_id!r} has paused; its handler is entered again when it is answered."


class AttemptOver(BaseException):
    """This attempt at a run has ended (`__cause__` says by what); the handler is to end too. Not an `Exception`."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return (
            f"This attempt at run {self.run_id!r} is over ({type(self.__cause__).__name__}); end its handler."
        )


@dataclass(eq=False)
class Corrupt(
    BrokerError,
    code="corrupt",
    says="The record {key!r} cannot be read: {reason}. It was left as it is and counts as active.",
):
    """Stored bytes cannot be read. They are left as they are and still count as active (P7)."""

    key: str
    reason: str


@dataclass(eq=False)
class WrongNamespace(
    BrokerError, code="wrong_namespace", says="Namespace {namespace!r} {problem}; allowed: {allowed}."
):
    """The namespace on the server and this client's settings disagree."""

    namespace: str
    problem: str
    allowed: str


@dataclass(eq=False)
class Unavailable(BrokerError, code="unavailable"):
    """The server cannot be reached or did not reply in time. `unsure`: a write may have happened; repeat it."""

    reason: str
    unsure: bool = False

    def __str__(self) -> str:
        after = "the write may have happened, repeat it" if self.unsure else "nothing was written"
        return f"The server is not available ({self.reason}); {after}."


@dataclass(eq=False)
class NotPermitted(
    BrokerError,
    code="not_permitted",
    says="The server does not permit this: {reason}. Check the user, its password and its access rules.",
):
    """The server refuses this user a command or a key, or does not know the password."""

    reason: str


@dataclass(eq=False)
class Untrusted(BrokerError, code="untrusted", says="This {purpose} does not count: {reason}."):
    """A signed text is forged, expired, revoked, used, or for another purpose or namespace. Nothing was written."""

    purpose: str
    reason: str


@dataclass(eq=False)
class UnsuitableServer(
    BrokerError, code="unsuitable_server", says="This server cannot be used: {problem}. {remedy}."
):
    """The server cannot keep the broker's promises as it is set up."""

    problem: str
    remedy: str


@dataclass(eq=False)
class NoServer(BrokerError, code="no_server"):
    """No server was named and none can be started here."""

    remedies: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"No Redis or Valkey server can be started here. Any of these helps: {'; '.join(self.remedies)}."
        )


@dataclass(eq=False)
class MissingExtra(
    BrokerError,
    code="missing_extra",
    says="{needed_for} needs the extra {extra!r}: pip install 'interrupt-broker[{extra}]'.",
):
    """An optional package is needed for this."""

    extra: str
    needed_for: str


@dataclass(eq=False)
class UnsupportedVersion(
    BrokerError,
    code="unsupported_version",
    says="{needed_for} works with {package} {allowed}, and {found} is installed.",
):
    """An optional package is there in a version that is not supported."""

    package: str
    found: str
    allowed: str
    needed_for: str


@dataclass(eq=False)
class OutOfMemory(
    BrokerError,
    code="full",
    says="The server is full ({reason}); nothing was written. Free memory or raise its limit, then repeat.",
):
    """The server is at its memory limit: new work is refused, answers and resumes still go through (P15)."""

    reason: str


@dataclass(eq=False)
class WaitTimeout(
    BrokerError,
    code="timeout",
    says="{id!r} was not settled within {seconds:g} s; it is still open and can be waited for again.",
):
    """The wait ended before what it waited for. Nothing was changed; waiting again is safe."""

    id: str
    seconds: float
