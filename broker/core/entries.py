"""What the journal of a run records: results and failures, the digest of a step, and the token of a call."""

import base64
import json
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, Self, get_type_hints
from weakref import WeakKeyDictionary

import msgpack
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ..errors import InvalidInput
from .answers import Cancel, Complete, Fail, Reject, Respond
from .digest import action_digest
from .fields import Id, Json
from .limits import JSON, check_json
from .models import Audience, Interrupt
from .records import InterruptRecord, Resolution
from .shape import Model
from .states import Settlement

SAID = 2000
"""Most characters of an error's text that are kept."""
SECRET_BYTES = 16
MISSED = "heartbeat"
"""Why a call expired whose job did not tell in time that it still runs."""
TOKEN = "tok_"  # noqa: S105 - a prefix


class Failure(Model):
    """Why a call has no result: the kind (an error's class, or rejected, expired, cancelled ...), and what is said."""

    SHOWN: ClassVar[tuple[str, ...]] = ("kind",)

    kind: Id
    text: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The failure that an error of a tool is. Of a long text the beginning is kept."""
        try:
            said = str(error)
        except Exception:  # noqa: BLE001 - an error that cannot even say what it is
            said = ""
        return cls(kind=type(error).__name__, text=said[:SAID].encode(errors="replace").decode())


class Result(Model):
    """How one entry ended: a value, or a failure. Null is a value."""

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"value"})

    value: Json = None
    failure: Failure | None = None

    @classmethod
    def of(cls, question: InterruptRecord) -> Self:
        """The result that a settled question stands for. Denied, abandoned and timed out stay three different facts."""
        ended = question.resolution
        if ended is None:
            raise InvalidInput("question", "is open", "one that was settled")
        who, after = ended.by.id if ended.by is not None else "somebody", _after(question.interrupt)
        match ended.answer:
            case Complete(value=value) | Respond(payload=value):
                return cls(value=value)
            case Fail(error=said):
                return cls(failure=Failure(kind="failed", text=said))
            case Reject(reason=said):
                return cls(failure=Failure(kind="rejected", text=f"Not approved by {who}: {said}. {after}"))
            case _:
                return cls(failure=_ended(ended, who, after))

    def message(self) -> str:
        """The result as a model reads it: text as it is, anything else as JSON, a failure as a sentence."""
        if self.failure is not None:
            return (
                f"Error ({self.failure.kind}): {self.failure.text}"
                if self.failure.text
                else f"Error: {self.failure.kind}"
            )
        if isinstance(self.value, str):
            return self.value
        return _json(self.value)


def _after(asked: Interrupt) -> str:
    """What is known of a call that was not allowed to go on."""
    if asked.reason == Interrupt.MAY_HAVE_RUN:
        return "It was begun before, and may have run."
    return "It was started." if asked.addressed_to is Audience.COMPLETIONS else "It was not run."


def _ended(ended: Resolution, who: str, after: str) -> Failure:
    reason = ended.answer.reason if isinstance(ended.answer, Cancel) else ended.reason
    said = f": {reason}" if reason else ""
    match ended.state:
        case Settlement.EXPIRED:
            why = "It missed a heartbeat." if ended.reason == MISSED else "Nobody answered in time."
            return Failure(kind="expired", text=f"{why} {after}")
        case Settlement.CANCELLED:
            return Failure(kind="cancelled", text=f"Given up by {who}{said}. {after}")
        case Settlement.WITHDRAWN:
            return Failure(kind="withdrawn", text=f"Taken back by {who}{said}. {after}")
        case Settlement.SUPERSEDED:
            return Failure(kind="superseded", text=f"Another answer took its place. {after}")
        case _:
            return Failure(kind="unanswered", text=f"Ended by {who}. {after}")


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def write_result(result: Result, most: int | None = None) -> bytes:
    """The record of a result. Raises `InvalidInput` when it takes more than `most` bytes."""
    return result.to_bytes(most=most)


def read_result(data: bytes) -> Result:
    """The result behind its record."""
    return Result.from_bytes(data, key="journal")


def plain(value: Any) -> JSON:
    """The JSON form of what a tool returned: as it is, or as pydantic writes models, dataclasses, dates, sets ...

    Raises `InvalidInput` for what has none.
    """
    try:
        return check_json("result", value)
    except InvalidInput as fault:
        wrong = fault
    try:
        return check_json("result", to_jsonable_python(_sorted(value)))
    except (PydanticSerializationError, ValueError, RecursionError):
        raise wrong from None


def _sorted(value: Any) -> Any:
    """The same without sets, whose order is another one in each process."""
    match value:
        case set() | frozenset():
            return sorted((_sorted(one) for one in value), key=repr)
        case list() | tuple():
            return [_sorted(one) for one in value]
        case dict():
            return {name: _sorted(one) for name, one in value.items()}
        case _:
            return value


def step_digest(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A digest of which step this is: the function's name and, where they have a JSON form, its arguments.

    Not where it is defined: a program that is started as a script calls its module `__main__`, and code moves.
    """
    known = function.func if isinstance(function, partial) else function
    name = getattr(known, "__name__", type(known).__name__)
    try:
        given = to_jsonable_python(_sorted([args, kwargs]), fallback=lambda value: type(value).__qualname__)
        return action_digest(name[:256], check_json("arguments", given))
    except (InvalidInput, PydanticSerializationError, ValueError, RecursionError):
        return action_digest(name[:256], None)


def mark_token(session: str, run: str, entry: str) -> str:
    """A token that completes one long-running call, and nothing else; it cannot be guessed."""
    packed: bytes = msgpack.packb([session, run, entry, secrets.token_bytes(SECRET_BYTES)])
    return TOKEN + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_token(token: str) -> tuple[str, str, str]:
    """Session, run and entry a token is about. Raises `InvalidInput` for what is no token."""
    body = token.removeprefix(TOKEN)
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        session, run, entry, secret = msgpack.unpackb(raw)
        if all(isinstance(part, str) for part in (session, run, entry)) and len(secret) == SECRET_BYTES:
            return session, run, entry
    except (ValueError, TypeError, msgpack.UnpackException):
        pass
    raise InvalidInput(
        "token", "is no completion token", "the token of a long-running call, as current_call() gave it"
    )


class Codec:
    """How the value of a step is written and comes back: by the type its function says it returns."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def write(self, value: Any) -> JSON:
        """The JSON form of what was returned. Raises `InvalidInput` for what has none or is of another type."""
        if self._adapter is None:
            return plain(value)
        try:
            written = self._adapter.dump_python(value, mode="json", warnings="error")
            self._adapter.validate_python(written)
        except (PydanticSerializationError, ValidationError) as error:
            problem = f"is not what its annotation says ({type(error).__name__})"
        else:
            return check_json("step", written)
        raise InvalidInput("step", problem, "the annotated type, or no annotation")

    def read(self, written: JSON) -> Any:
        """The value behind its JSON form, the same at the first run and at every replay."""
        return self._adapter.validate_python(written) if self._adapter is not None else written


_codecs: Final[WeakKeyDictionary[Callable[..., Any], Codec]] = WeakKeyDictionary()


def codec_of(function: Callable[..., Any]) -> Codec:
    """How the results of a function are written and read, by what its annotation says it returns."""
    known = function.func if isinstance(function, partial) else function
    known = getattr(known, "__func__", known)  # a method is another object at each look
    try:
        found = _codecs.get(known)
    except TypeError:  # what cannot be remembered is looked at each time
        return _new_codec(known)
    if found is None:
        found = _codecs[known] = _new_codec(known)
    return found


def _new_codec(function: Callable[..., Any]) -> Codec:
    asked = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        wanted = get_type_hints(asked).get("return", Any)
    except (NameError, TypeError):
        wanted = Any
    if wanted is Any or wanted is object:
        return Codec(None)
    try:
        return Codec(TypeAdapter(wanted))
    except PydanticUserError as error:
        if error.code == "typed-dict-version":  # plain maps, which an older Python hides the types of
            return Codec(None)
        problem = "returns a type that cannot be written as JSON"
    raise InvalidInput("step", problem, "JSON, pydantic models, dataclasses and what they are made of")
