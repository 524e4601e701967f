"""`{session_id}.interrupt.json`: the frozen agent as swink writes it, read and written byte for byte.

The file has five keys, all required; others are kept and written back behind them. Its layout is that of serde_json's
pretty writer. A file with another layout (or with numbers that Rust and Python print in different ways) is kept as it
is beside what it says, and comes out again as it went in.
"""

import json
from typing import Final

from ...core.limits import JSON, check_id, check_text
from ...core.models import InterruptState
from ...errors import InvalidInput

SUFFIX: Final = ".interrupt.json"
"""What follows the session id in the name of its file."""

_FRAMEWORK: Final = "swink"
_REQUIRED: Final = ("interrupted_at", "pending_tool_calls", "context_snapshot", "system_prompt", "model")
_MODEL: Final = ("provider", "model_id", "thinking_level")
_THINKING: Final = ("off", "minimal", "low", "medium", "high", "extra_high")
_U64: Final = 2**64
_FORBIDDEN: Final = ("/", "\\", "..", ":")
_ALLOWED_ID: Final = (
    "text without '/', '\\', '..', ':', braces and control characters, no space at either end"
)


def check_session_id(session: str) -> str:
    """`session`, where swink takes it: its store makes file names of ids. Raises `InvalidInput` (S12).

    Everywhere else a session id of the broker may hold ':' and '/'.
    """
    check_id("session", session)
    if any(part in session for part in _FORBIDDEN):
        raise InvalidInput("session", "holds what may not be in a file name", _ALLOWED_ID)
    return session


def read_interrupt(data: bytes) -> InterruptState:
    """The frozen agent behind the bytes of a file, its `interrupted_at` kept.

    Raises `InvalidInput` that names the key: all five must be there, `arguments` of each call too (null is a value of
    it), the model must say provider, model id and thinking level. Nothing is guessed.
    """
    state = _state(_parse(data))
    if state.framework is not None or write_interrupt(state) == data:
        return state
    return state.model_copy(update={"framework": _FRAMEWORK, "opaque": data})


def write_interrupt(state: InterruptState) -> bytes:
    """The bytes of the file for a frozen agent: those it was read from, where it was not changed since.

    What another framework left in the state is written behind swink's own keys, which swink passes over, so that it
    comes back. Raises `InvalidInput` where a key has no value: a state that the broker has stored has a time; the
    model is its writer's to give.
    """
    if state.framework == _FRAMEWORK and state.opaque is not None:
        bare = state.model_copy(update={"framework": None, "opaque": None})
        if _state(_parse(state.opaque)) == bare:
            return state.opaque
        state = bare
    wire = state.to_json()
    _check_keys("", wire, _REQUIRED)
    wire["model"] = _model(wire["model"])
    return json.dumps(wire, ensure_ascii=False, indent=2).encode()


def _parse(data: bytes) -> JSON:
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError:
        problem = "is no UTF-8"
    except json.JSONDecodeError as error:
        problem = f"is no JSON (line {error.lineno}, column {error.colno})"
    except RecursionError:
        problem = "is nested too deep"
    except ValueError:
        problem = "holds a number that is too long"
    raise InvalidInput("interrupt", problem, "the JSON of swink's InterruptState")


def _state(found: JSON) -> InterruptState:
    if not isinstance(found, dict):
        raise InvalidInput("interrupt", "is no object", "the JSON of swink's InterruptState")
    _check_keys("", found, _REQUIRED)
    at, context = found["interrupted_at"], found["context_snapshot"]
    if type(at) is not int or not 0 <= at < _U64:
        raise InvalidInput("interrupted_at", "is no time", "whole seconds since 1970")
    if not isinstance(context, list):
        raise InvalidInput("context_snapshot", "is no list", "a list of messages")
    for place, message in enumerate(context):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise InvalidInput(
                f"context_snapshot[{place}]", "is no message", "an object with a role, as in user, assistant"
            )
    return InterruptState.from_json(found | {"model": _model(found["model"])})


def _model(found: JSON) -> dict[str, JSON]:
    """The model with the one null that swink writes, for budgets that are not set; others are left out when unset."""
    if not isinstance(found, dict):
        raise InvalidInput("model", "is no object", "an object with provider, model_id and thinking_level")
    _check_keys("model.", found, _MODEL)
    for key in _MODEL:
        if not isinstance(found[key], str):
            raise InvalidInput(f"model.{key}", "is no text", "text")
        check_text(f"model.{key}", found[key])
    if found["thinking_level"] not in _THINKING:
        raise InvalidInput("model.thinking_level", "is not one of the words", ", ".join(_THINKING))
    first = {key: found[key] for key in _MODEL} | {"thinking_budgets": None}
    return dict(found) if "thinking_budgets" in found else first | found


def _check_keys(where: str, found: dict[str, JSON], required: tuple[str, ...]) -> None:
    for key in required:
        if key not in found:
            raise InvalidInput(f"{where}{key}", "is missing", "a value")
