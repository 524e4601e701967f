"""Agents of gated and long-running functions that are called like any other, async and blocking."""

import os
from pathlib import Path
from typing import Any

from broker import BlockingRun, CallFailed, Pending, Run, current_call
from broker.adapters.functions import gated, long_running
from broker.core.answers import AnswerKind

OFFERS = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT)


def did(folder: str, what: str) -> str:
    """Notes an effect with the key of its call and the process, and says what was done."""
    with Path(folder, "effects").open("a") as file:
        file.write(f"{current_call().key} {os.getpid()} {what}\n")
    return what


def leave_token(folder: str) -> None:
    """Lets the test complete the call."""
    Path(folder, "token").write_text(current_call().token)


@gated(reviewers="refunds", offers=OFFERS)
async def refund(folder: str, amount: int) -> str:
    return did(folder, f"refunded {amount}")


@long_running
async def render(folder: str, prompt: str) -> Pending:
    leave_token(folder)
    return Pending(handle=prompt)


@gated(reviewers="refunds", offers=OFFERS)
def pay(folder: str, amount: int) -> str:
    return did(folder, f"paid {amount}")


@long_running
def transcode(folder: str, prompt: str) -> Pending:
    leave_token(folder)
    return Pending(handle=prompt)


async def refunder(run: Run[dict[str, Any]]) -> dict[str, Any]:
    try:
        said = await refund(run.input["folder"], amount=run.input["amount"])
    except CallFailed as failed:
        said = failed.kind
    return {"said": said, "pid": os.getpid()}


def payer(run: BlockingRun[dict[str, Any]]) -> dict[str, Any]:
    try:
        said = pay(run.input["folder"], amount=run.input["amount"])
    except CallFailed as failed:
        said = failed.kind
    return {"said": said, "pid": os.getpid()}


async def renderer(run: Run[dict[str, Any]]) -> Any:
    return await render(run.input["folder"], prompt="a cat")


def transcoder(run: BlockingRun[dict[str, Any]]) -> Any:
    return transcode(run.input["folder"], prompt="a cat")


ASYNC = {"refunder": refunder, "renderer": renderer}
BLOCKING = {"payer": payer, "transcoder": transcoder}


def effects(folder: Path) -> list[str]:
    """What was done, each with its key and its process."""
    file = folder / "effects"
    return file.read_text().splitlines() if file.exists() else []
