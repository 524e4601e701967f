"""S23: whatever is logged or shown of a value of ours, arguments and secrets are not in it."""

import logging
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import broker as front
from broker import Action, Approve, AsyncBroker, Interrupt, InvalidInput, Respond, Worker, gated, tool
from broker.core.shape import Model
from broker.interop.swink import HIDDEN, ApprovalRequest, Approvals, hidden
from tests.features.conftest import broker, clock, connect, serve
from tests.worker.fleet import ended, run_when

from .filling import DEEP, SECRET, build, classes, is_free_text, is_value

__all__ = ["broker", "clock", "connect", "serve"]

CLASSES = classes()
SHOWN_WORDS = {
    "InterruptState.framework",
    "Interrupt.expires_at",
    "RunAgentInput.protocol_version",
    "RunError.code",
    "RunStarted.protocol_version",
}
"""Texts of any form that are words for machines all the same."""


def shown(value: Any) -> list[str]:
    """Everything a log line or a debugger prints of a value."""
    return [repr(value), str(value), f"{value}", f"{value!s:>9}", repr([value]), repr({"a": value})]


@pytest.mark.row("S23")
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_S23_no_value_shows_what_is_in_it(kind: type) -> None:
    assert not [text for text in shown(build(kind)) if SECRET in text]


def test_every_public_value_is_among_them() -> None:
    public = [getattr(front, name) for name in front.__all__]
    assert {one for one in public if isinstance(one, type) and is_value(one)} <= set(CLASSES)
    models = [kind for kind in CLASSES if issubclass(kind, Model)]
    words = {f"{kind.__name__}.{name}" for kind in models for name in kind.SHOWN if is_free_text(kind, name)}
    assert words == SHOWN_WORDS, "free text that is shown"
    holding = [kind for kind in CLASSES if SECRET in str(vars_of(build(kind)))]
    assert len(holding) > 30, "examples that prove nothing"


def vars_of(value: Any) -> Any:
    """What is really in a value."""
    if isinstance(value, Model):
        return value.__dict__
    return {name: getattr(value, name) for name in get_type_hints(type(value))}


@pytest.mark.row("S23")
def test_S23_a_request_shows_its_shape_and_no_secret() -> None:
    asked = ApprovalRequest(
        id="tc_7", name="shell", arguments={"cmd": SECRET}, requires_approval=True,
        context={"cost": 3, "token": SECRET, "api_key": 7, "why": SECRET, "of": [{"Authorization": 1, "n": None}]},
    )  # fmt: skip
    assert repr(asked) == (
        "ApprovalRequest(id='tc_7', name='shell', arguments='[hidden]', requires_approval=True, context={'cost': 3, "
        "'token': '[hidden]', 'api_key': '[hidden]', 'why': '[hidden]', 'of': [{'Authorization': '[hidden]', "
        "'n': None}]})"
    )


@pytest.mark.row("S23")
@pytest.mark.parametrize(
    "key",
    ["password", "PASSWD", "passphrase", "pin", "client_secret", "accessToken", "api-key", "apiKey", "private_key",
     "aws_access_key_id", "Authorization", "credentials", "Cookie", "bearer", "signature"],
)  # fmt: skip
def test_S23_keys_that_look_like_secrets_go_whole(key: str) -> None:
    assert hidden({key: {"n": 1}, "n": [1, True, None]}) == {key: HIDDEN, "n": [1, True, None]}


def test_others_stay() -> None:
    for key in ("author", "count", "pinned", "compass"):
        assert hidden({key: 1, "at": SECRET}) == {key: 1, "at": HIDDEN}


@pytest.mark.row("S23")
async def test_S23_no_log_line_of_a_fleet_has_a_secret(
    broker: AsyncBroker, serve: Callable[..., Worker], caplog: pytest.LogCaptureFixture
) -> None:
    """A run with secrets in all it says, that pauses, is edited, fails, dies and is looked at; at the loudest level."""
    caplog.set_level(logging.DEBUG)

    @gated
    async def pay(to: str) -> str:
        raise ValueError(f"no account {to}")

    @tool()
    def look(at: str) -> str:
        return at

    def angry(asked: ApprovalRequest) -> None:
        raise KeyError(asked.arguments)

    async def leaky(run: Any) -> Any:
        await run.step(lambda: run.input)
        calls = [
            {"id": "c1", "name": "pay", "arguments": {"to": SECRET}},
            {"id": "c2", "name": "look", "arguments": {"at": SECRET, "more": SECRET}},
            {"id": "c3", "name": "look", "arguments": SECRET},
            {"id": "c4", "name": "look", "arguments": {"at": SECRET}},
        ]
        await Approvals(angry).calls(run, calls, [pay, look])
        await run.calls(calls, [pay, look], context=[DEEP])
        raise RuntimeError(f"failed with {SECRET}")

    worker = serve(leaky=leaky)
    started = await broker.start("leaky", DEEP, session="s", metadata=DEEP)
    paused = await run_when(broker, started.run_id, front.RunState.WAITING)
    one = (await broker.inbox.get(paused.interrupt_ids[0])).id
    told = [
        await broker.inbox.answer(one, Respond(payload=DEEP)),
        await broker.inbox.answer(one, Approve(note=SECRET)),
    ]
    dead = await ended(broker, started.run_id)
    assert SECRET in dead.errors[0], "an operator is told; a log is not"
    with pytest.raises(InvalidInput) as refused:
        await broker.suspend("a", Interrupt(message=SECRET, payload={"x": object()}), session="t")
    looked: list[Any] = [
        dead,
        *told,
        await broker.history("s"),
        await broker.runs.why(dead.id),
        worker,
        broker,
        refused.value,
    ]
    looked.extend((Action(tool="pay", arguments=DEEP), await broker.dead.list()))
    logging.getLogger("broker").warning("all of it: %s %r", looked, looked)
    assert "leaky" in caplog.text
    assert [line for line in caplog.text.splitlines() if SECRET in line] == []
