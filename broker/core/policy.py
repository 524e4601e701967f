"""The rules that need no clock and no server: what may be suspended, and what may answer it.

Response schemas are checked with the extra `schema`; nothing is ever fetched, a reference must lie in the schema.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.util import find_spec
from typing import Literal, NamedTuple

from ..errors import InvalidInput, MissingExtra
from .answers import Answer, AnswerKind, Complete, Edit, Respond, UnknownAnswer
from .digest import action_digest, canonical_json
from .fields import to_ms
from .limits import JSON, LIMITS, Limits, check_count
from .models import Action, Interrupt, InterruptState, PendingToolCall
from .outcomes import Invalid
from .patterns import patience, patient
from .wire import body

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def _keeps_shape(before: JSON, after: JSON) -> bool:
    """Whether an edit gives a tool arguments by name where it had them so: else it could not be called."""
    return not isinstance(before, dict) or isinstance(after, dict)


def validate_answer(interrupt: Interrupt, answer: Answer) -> Invalid | None:
    """None when the answer fits the interrupt, else what is wrong with it: kind, edit, or the response schema (F16)."""
    offered = interrupt.offered
    if isinstance(answer, UnknownAnswer) or answer.kind not in offered:
        problem = "is not known to this release" if isinstance(answer, UnknownAnswer) else "is not offered"
        return Invalid(field="answer.kind", problem=problem, allowed=", ".join(offered))
    if isinstance(answer, Edit) and interrupt.action is None:
        return Invalid(
            field="answer.kind", problem="edits an interrupt without an action", allowed="other answers"
        )
    schema = interrupt.response_schema
    match answer:
        case Respond(payload=value):
            field = "payload"
        case Complete(value=value):
            field = "value"
        case Edit(arguments=value):
            field, schema = "arguments", interrupt.arguments_schema
        case _:
            return None
    action = interrupt.action
    if isinstance(answer, Edit) and action is not None and not _keeps_shape(action.arguments, value):
        return Invalid(field="arguments", problem="is no object", allowed="an object, as the call has")
    if schema is None:
        return None
    try:
        fault = misfit(schema, value)
    except InvalidInput as broken:
        return Invalid(field=broken.field, problem=broken.problem, allowed=broken.allowed)
    if fault is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault.path)
    return Invalid(field=f"{field}{place}", problem="does not fit the response schema", allowed=fault.rule)


def approved_digest(interrupt: Interrupt, answer: Answer) -> str | None:
    """The digest of what may run after this answer: the original action, or the edited one; None for a refusal."""
    if interrupt.action is None:
        return None
    if isinstance(answer, Edit):
        return action_digest(interrupt.action.tool, answer.arguments)
    return interrupt.action.digest if answer.kind is AnswerKind.APPROVE else None


def expiry(interrupt: Interrupt, default: timedelta | None) -> tuple[Literal["in", "at", "never"], int]:
    """When the interrupt ends, for the script that knows the time: `in` or `at` so many milliseconds, or `never`."""
    if interrupt.expires_at is not None:
        return "at", to_ms(interrupt.expires_at)
    span = default if interrupt.expires_in == "default" else interrupt.expires_in
    if span is None:
        return "never", 0
    return "in", span // timedelta(milliseconds=1)


def check_suspension(
    state: InterruptState,
    interrupts: Sequence[Interrupt],
    *,
    limits: Limits = LIMITS,
    now: datetime | None = None,
) -> tuple[InterruptState, tuple[Interrupt, ...]]:
    """State and interrupts of one suspension, each completed from the other. Raises `InvalidInput`, `MissingExtra`.

    Pending calls without interrupts become approvals; interrupts with a call and an action become pending calls.
    Where both are given they must name the same calls with the same tools and arguments. `now` is only for a first,
    friendly look at `expires_at`; the script decides by its own clock.
    """
    found = tuple(interrupts) or tuple(_approval(call) for call in state.pending_tool_calls)
    if not found:
        raise InvalidInput("interrupts", "is empty", "at least one interrupt or pending call")
    check_count("interrupts", len(found), limits.interrupts_per_suspension)
    for place, interrupt in enumerate(found):
        _check_interrupt(f"interrupts[{place}]", interrupt, now)
    calls = _calls_of(found)
    if not state.pending_tool_calls:
        pending = tuple(_pending(call_id, action) for call_id, action in calls.items())
        return InterruptState.made({**state.__dict__, "pending_tool_calls": pending}), found
    _match(state.pending_tool_calls, calls)
    return state, found


def _approval(call: PendingToolCall) -> Interrupt:
    return Interrupt.approval(Action(tool=call.tool_name, arguments=call.arguments), call.tool_call_id)


def _pending(call_id: str, action: Action) -> PendingToolCall:
    return PendingToolCall.made(
        {"tool_call_id": call_id, "tool_name": action.tool, "arguments": action.arguments}
    )


def _check_interrupt(field: str, interrupt: Interrupt, now: datetime | None) -> None:
    if now is not None and interrupt.expires_at is not None and interrupt.expires_at <= now:
        raise InvalidInput(f"{field}.expires_at", "is in the past", "a time to come")
    try:
        for name in ("response_schema", "arguments_schema"):
            if (schema := getattr(interrupt, name)) is not None:
                check_schema(schema, name)
        if interrupt.default_answer is not None:
            _check_default(interrupt, interrupt.default_answer)
    except InvalidInput as fault:
        inner = fault
    else:
        return
    raise inner.inside(field)


def _check_default(interrupt: Interrupt, answer: Answer) -> None:
    if wrong := validate_answer(interrupt, answer):
        raise InvalidInput(f"default_answer.{wrong.field}", wrong.problem, wrong.allowed)


def _calls_of(interrupts: Sequence[Interrupt]) -> dict[str, Action]:
    """The calls that interrupts are about. One call asked about twice is refused."""
    calls: dict[str, Action] = {}
    seen: set[str] = set()
    for place, interrupt in enumerate(interrupts):
        if interrupt.call_id is None:
            continue
        if interrupt.call_id in seen:
            raise InvalidInput(f"interrupts[{place}].call_id", "is used twice", "one interrupt for each call")
        seen.add(interrupt.call_id)
        if interrupt.action is not None:
            calls[interrupt.call_id] = interrupt.action
    return calls


def _match(pending: Sequence[PendingToolCall], calls: dict[str, Action]) -> None:
    ids = [call.tool_call_id for call in pending]
    if len(set(ids)) != len(ids):
        raise InvalidInput("state.pending_tool_calls", "names a call twice", "one entry for each call")
    for place, call in enumerate(pending):
        action, field = calls.get(call.tool_call_id), f"state.pending_tool_calls[{place}]"
        if action is None:
            raise InvalidInput(
                field, "has no interrupt with its call and action", "one interrupt for each call"
            )
        if not _same(call, action):
            raise InvalidInput(field, "differs from its interrupt's action", "the same tool and arguments")
    if missing := calls.keys() - set(ids):
        raise InvalidInput(
            "state.pending_tool_calls", f"lacks {len(missing)} calls", "one for each interrupt's call"
        )


def _same(call: PendingToolCall, action: Action) -> bool:
    """Whether a pending call is this action: equal bytes are equal values, and others may be (1.0 and 1).

    A call whose arguments are null has none.
    """
    given = {} if call.arguments is None and action.arguments == {} else call.arguments
    if call.tool_name == action.tool and body(given) == body(action.arguments):
        return True
    return action_digest(call.tool_name, given) == action.digest


def check_schema(schema: dict[str, JSON], field: str = "response_schema") -> None:
    """Nothing, for a JSON Schema that can be used without fetching. Raises `InvalidInput`, or `MissingExtra`."""
    if find_spec("jsonschema") is None:
        raise MissingExtra("schema", f"An interrupt with {field}")
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise InvalidInput(field, "refers to a schema elsewhere", "references that begin with '#'")
    if not _is_schema(canonical_json(schema)):
        raise InvalidInput(field, "is no valid JSON Schema", "a JSON Schema object, draft 2020-12 by default")


def _references(node: JSON) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _REFERENCES and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


@lru_cache(maxsize=256)
def _is_schema(schema: bytes) -> bool:
    """Checking costs milliseconds and agents send the same few schemas again and again."""
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - optional extra
    from jsonschema.validators import validator_for  # noqa: PLC0415 - optional extra

    parsed = json.loads(schema)
    try:
        validator_for(parsed, default=Draft202012Validator).check_schema(parsed)
    except (SchemaError, RecursionError):
        return False
    return True


class Misfit(NamedTuple):
    """Where a value breaks a schema, and the rule it breaks; the value itself is not repeated (P13)."""

    path: tuple[str | int, ...]
    rule: str


def misfit(schema: dict[str, JSON], value: JSON) -> Misfit | None:
    """The first place where a value breaks a response schema; None where it fits.

    Raises `InvalidInput` for a schema with references that lead nowhere or that takes too long, and `MissingExtra`.
    """
    if find_spec("jsonschema") is None:
        raise MissingExtra("schema", "Answering an interrupt with a response schema")
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - optional extra
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - optional extra
    from jsonschema.validators import validator_for  # noqa: PLC0415 - optional extra
    from referencing import Registry  # noqa: PLC0415 - optional extra
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - optional extra

    validator = patient(validator_for(schema, default=Draft202012Validator))(schema, registry=Registry())
    try:
        with patience():
            error = best_match(validator.iter_errors(value))
    except TimeoutError:
        raise InvalidInput("response_schema", "takes too long", "patterns and references that end") from None
    except (Unresolvable, RecursionError):
        raise InvalidInput("response_schema", "cannot be resolved", "references inside the schema") from None
    if error is None:
        return None
    rule = canonical_json({str(error.validator): error.validator_value}).decode()
    return Misfit(tuple(error.absolute_path), rule[:200])
