"""What a client may ask for: the command it sends, what the model expects of it, and what it was told."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from broker.core.outcomes import AlreadyDecided
from broker.core.outcomes import Told as Outcome
from broker.errors import StaleLease
from broker.store.commands.pauses import Pause
from broker.store.commands.runs import Leased, Place

from .client import Client
from .seen import View
from .state import Model, Told


class Reply(NamedTuple):
    """What came back: the script's rows, what the client made of the first, and what there was to see before."""

    rows: list[Any]
    result: Any
    before: View


def brief(value: object) -> str:
    """A part of a request, in few letters."""
    match value:
        case Place(run=run):
            return f"run ..{run[-4:]}"
        case Leased(token=token):
            return f"lease {token.fence} {token.nonce} of ..{token.run[-4:]}"
        case Pause():
            ids = ", ".join(f"{q.id} ({q.call} {q.expiry} {q.deadline})" for q in value.questions)
            held = f"lease {value.token.fence} {value.token.nonce}" if value.token else "no lease"
            kept = f", keeps {value.keep}" if value.keep else ""
            how = f"{value.mode}, instead" if value.replace else str(value.mode)
            return f"run ..{value.place.run[-4:]} seq {value.seq} {how}, {held}{kept}, asks {ids}"
        case _:
            return repr(value)


@dataclass(frozen=True, repr=False)
class Request(ABC):
    """One request of one client. It may be sent late, and more than once."""

    KEEPS: ClassVar[bool] = True
    """Whether a copy may still arrive much later."""

    def __repr__(self) -> str:
        shown = (f"{one.name}={brief(getattr(self, one.name))}" for one in fields(self) if one.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    @abstractmethod
    def command(self, client: Client) -> Any:
        """The command, with the addresses of its records as they are now."""

    @abstractmethod
    def expected(self, m: Model) -> Told:
        """Does it in the model; what its caller must be told."""

    def told(self, reply: Reply) -> Told:
        """What its caller was told, in the words of the protocol's table."""
        return outcome(reply.result)

    def looked(self, client: Client) -> "Request":
        """The request after a look at the early answers it was asked to look at."""
        _ = client
        return self


def outcome(result: Any) -> Told:
    """An outcome as its code; the winner's operation where somebody else was first."""
    if isinstance(result, StaleLease):
        return ("stale_lease",)
    if isinstance(result, BaseException):
        raise result
    assert isinstance(result, Outcome)
    if isinstance(result, AlreadyDecided):
        return (result.code, result.winner.op)
    return (result.code,)
