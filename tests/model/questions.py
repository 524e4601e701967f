"""The questions that runs ask: every policy of a deadline, both audiences, with and without edits."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from broker.core.answers import AnswerKind, Reject
from broker.core.models import Action, Interrupt, OnExpiry

SOON: Final = timedelta(seconds=30.5)
EDITABLE: Final = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL)

Ask = Callable[[str, int, int], Interrupt]
"""From a call id, an amount and the time (microseconds) to a question."""


def _refund(amount: int) -> Action:
    return Action(tool="refund", arguments={"amount": amount})


def gate(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    return Interrupt.approval(_refund(amount), call, expires_in=SOON)


def patient(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    return Interrupt.approval(_refund(amount), call, expires_in=SOON, on_expiry=OnExpiry.WAIT)


def answered_by_default(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    late = Reject(reason="late")
    return Interrupt.approval(
        _refund(amount), call, expires_in=SOON, on_expiry=OnExpiry.DEFAULT, default_answer=late
    )


def editable(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    return Interrupt.approval(_refund(amount), call, expires_in=None, offers=EDITABLE)


def dated(call: str, amount: int, now: int) -> Interrupt:
    at = datetime.fromtimestamp(now / 1_000_000, UTC) + timedelta(seconds=20.5)
    return Interrupt.approval(_refund(amount), call, expires_at=at)


def job(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    return Interrupt.completion(_refund(amount), call, handle="job-1", expires_in=SOON)


def free(call: str, amount: int, now: int) -> Interrupt:
    _ = now
    return Interrupt.question({"how much": amount, "of": call}, expires_in=SOON)


QUESTIONS: Final[tuple[Ask, ...]] = (gate, job, editable, patient, answered_by_default, dated, free)
