"""Webhooks in: whose signed requests complete jobs or answer questions, and where in their bodies it is said."""

from enum import StrEnum
from typing import Any, ClassVar, Final

from pydantic import Field

from ..errors import InvalidInput
from .access import check_may_decide
from .answers import Principal
from .fields import Instant, Name, Text
from .hooks import HookSecret
from .limits import JSON
from .shape import Model

_MISSING: Final = object()


class Does(StrEnum):
    """What an intake is for."""

    COMPLETE = "complete"
    """Tell the result of a job, or that it failed."""
    ANSWER = "answer"
    """Answer questions."""


class Intake(Model):
    """One sender of signed requests. `by` is who acts with them. Places in a body are names with dots: `data.job.id`.

    `to` leads to the interrupt's id or the token of its call; `value` to the result of a job, `error` to the text of
    its failure, `answer` to an answer (`{"kind": "approve"}`).
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("name", "does", "by", "created_at")

    name: Name
    does: Does
    by: Principal
    to: Text = "to"
    value: Text = "value"
    error: Text = "error"
    answer: Text = "answer"
    created_at: Instant
    secrets: tuple[HookSecret, ...] = ()

    def public(self) -> "Intake":
        """The same without its secrets, as it is listed."""
        return self.model_copy(update={"secrets": ()})

    def check(self) -> None:
        """Raises `InvalidInput` for a party that must not have it: an agent never decides (F43)."""
        if self.does is Does.ANSWER:
            check_may_decide("by", self.by)


class NewIntake(Model):
    """An intake that was just made. `secret` is told here once."""

    SHOWN: ClassVar[tuple[str, ...]] = ("intake",)

    intake: Intake
    secret: str = Field(repr=False)


def at(body: JSON, place: str, default: Any = _MISSING) -> Any:
    """What lies at a place of a body. Raises `InvalidInput` where nothing does, and no default is given."""
    found: Any = body
    for name in place.split("."):
        if not isinstance(found, dict) or name not in found:
            if default is _MISSING:
                raise InvalidInput(place, "is not in the body", "where this intake was told to look")
            return default
        found = found[name]
    return found
