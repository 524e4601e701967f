"""Recorded runs: reading them, checking them, and what they say at each place.

A file holds one run a line, a JSON object with `run_id`, `model` and `messages` in the chat-completions format. Ids
of tool calls may be missing or repeated in such recordings, so a call is known by its place in the run.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from ..core.limits import JSON, check_id, check_json
from ..errors import InvalidInput

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """Which tools need an approval, and which are completed out of band. All others run inline."""

    confirm: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        both = sorted(self.confirm & self.long)
        if both:
            raise InvalidInput("long", f"names {both[0]}, as confirm does", "each tool in one of the two")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the record has a result of. `key` is its turn and its place in it, unique within the run."""

    key: str
    tool: str
    arguments: JSON
    result: Message


@dataclass(frozen=True)
class Transcript:
    """One recorded run."""

    run_id: str
    model: str | None
    messages: tuple[Message, ...]

    @cached_property
    def turns(self) -> dict[int, tuple[Call, ...]]:
        """The tool calls with results, by the place of the message that makes them, in the order of the results."""
        places = (n for n, message in enumerate(self.messages) if message.get("tool_calls"))
        found = ((n, tuple(_paired(n, self.messages))) for n in places)
        return {n: calls for n, calls in found if calls}

    @cached_property
    def calls(self) -> dict[str, Call]:
        """Every tool call with a result, by its key."""
        return {call.key: call for calls in self.turns.values() for call in calls}


def _paired(at: int, messages: Sequence[Message]) -> Iterator[Call]:
    """The calls of a turn in the order of their results: by id where that helps, else by name, else as they come."""
    asked = list(enumerate(messages[at]["tool_calls"]))
    for message in messages[at + 1 : at + 1 + len(asked)]:
        if message.get("role") != "tool":
            return
        place, call = min(asked, key=lambda one: _distance(one[1], message))
        asked.remove((place, call))
        function = call["function"]
        yield Call(f"{at}.{place}", function["name"], _arguments(function.get("arguments")), message)


def _distance(call: Message, message: Message) -> int:
    """How badly a result fits a call; the first of those that fit best is meant."""
    if call.get("id") is not None and call.get("id") == message.get("tool_call_id"):
        return 0
    return 1 if call["function"]["name"] == message.get("name") else 2


def _arguments(text: JSON) -> JSON:
    """The arguments as a value; what is no JSON, or none the broker takes, stays the text it is."""
    if not isinstance(text, str):
        return text
    try:
        return check_json("arguments", json.loads(text, parse_constant=_refuse_constant))
    except (ValueError, RecursionError, InvalidInput):
        return text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read_rules(runs: Path) -> Rules:
    """What `confirm` and `long` say in the TOML file of the same name beside the runs; no rules where there is none."""
    path = runs.with_suffix(".toml")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Rules()
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read ({error.strerror})", "a TOML file") from None
    except ValueError as error:
        raise InvalidInput(str(path), f"is no TOML ({error})", "a TOML file") from None
    tools: dict[str, frozenset[str]] = {}
    for name in ("confirm", "long"):
        value = found.get(name, [])
        if not isinstance(value, list) or not all(isinstance(tool, str) for tool in value):
            raise InvalidInput(f"{path}: {name}", "is no list of texts", "a list of tool names")
        tools[name] = frozenset(value)
    return Rules(**tools)


def read(path: Path) -> dict[str, Transcript]:
    """The recorded runs of a file by their ids, in its order. Raises `InvalidInput` that names the line."""
    found: dict[str, Transcript] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    one = _checked(f"{path.name}:{number}", line)
                    if one.run_id in found:
                        raise InvalidInput(
                            f"{path.name}:{number} run_id", "was there before", "one line a run"
                        )
                    found[one.run_id] = one
    except OSError as error:
        raise InvalidInput(
            str(path), f"cannot be read ({error.strerror})", "a file with one run a line"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(str(path), "is no UTF-8 text", "a file with one run a line") from None
    if not found:
        raise InvalidInput(str(path), "holds no run", "a file with one run a line")
    return found


def read_again(path: Path) -> dict[str, Transcript]:
    """The same in a process whose parent has checked the file."""
    with path.open(encoding="utf-8") as lines:
        records = (json.loads(line) for line in lines if line.strip())
        return {r["run_id"]: Transcript(r["run_id"], r.get("model"), tuple(r["messages"])) for r in records}


def _checked(where: str, line: str) -> Transcript:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InvalidInput(where, f"is no JSON ({error})", "a JSON object") from None
    if not isinstance(record, dict):
        raise InvalidInput(where, "is no object", "an object with run_id, model and messages")
    run_id = check_id(f"{where} run_id", record.get("run_id", ""))
    messages = check_json(f"{where} messages", record.get("messages"))
    if not isinstance(messages, list) or not messages:
        raise InvalidInput(f"{where} messages", "are no list, or empty", "a list of messages")
    for n, message in enumerate(messages):
        _check_message(f"{where} messages[{n}]", message)
    return Transcript(run_id, check_json(f"{where} model", record.get("model")), tuple(messages))


def _check_message(where: str, message: JSON) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidInput(where, "is no object with a role", "a chat-completions message")
    calls = message.get("tool_calls") or []
    for place, call in enumerate(calls if isinstance(calls, list) else [None]):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise InvalidInput(
                f"{where}.tool_calls[{place}]", "has no function", "a call of a function by its name"
            )
        check_id(f"{where}.tool_calls[{place}].function.name", function.get("name", ""))
