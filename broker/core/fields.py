"""The kinds of field our values are made of, each with its check.

The checks run on what users and strangers give, not on what we wrote ourselves: that was checked before it was
written, and checking it again at every read would cost more than the read.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, AwareDatetime, ValidationInfo

from .limits import JSON, LIMITS, check_count, check_id, check_json, check_name, check_text

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)


class OpenWord(StrEnum):
    """A set of words that another version may add to; an unknown one is kept as a member of its own (P10).

    Such a member equals no known one, is written back as it came, and cannot be made by giving the text to a model.
    """

    @classmethod
    def read(cls, text: str) -> Self:
        """The member for `text`, a new one of this word alone where this release has none."""
        if text in cls._value2member_map_:
            return cls(text)
        member = str.__new__(cls, text)
        member._name_, member._value_ = "UNKNOWN", text
        return member

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return type(self).read, (self.value,)

    @property
    def is_known(self) -> bool:
        """Whether this release knows the word."""
        return self.value in type(self)._value2member_map_


class Trust(Enum):
    """Where a value being read came from: our own bytes, or anybody's JSON."""

    OURS = "ours"
    THEIRS = "theirs"


def to_ms(when: datetime) -> int:
    """An aware datetime as whole milliseconds since 1970."""
    return (when - EPOCH) // MILLISECOND


def from_ms(ms: int) -> datetime:
    """Milliseconds since 1970 as an aware UTC datetime."""
    return EPOCH + timedelta(milliseconds=ms)


def _checked_json(value: JSON, info: ValidationInfo) -> JSON:
    return value if info.context is Trust.OURS else check_json(info.field_name or "value", value)


def _checked_id(value: str, info: ValidationInfo) -> str:
    return value if info.context is Trust.OURS else check_id(info.field_name or "id", value)


def _checked_name(value: str, info: ValidationInfo) -> str:
    return value if info.context is Trust.OURS else check_name(info.field_name or "name", value)


def _checked_text(value: str, info: ValidationInfo) -> str:
    return value if info.context is Trust.OURS else check_text(info.field_name or "text", value)


def _checked_few(value: tuple[JSON, ...], info: ValidationInfo) -> tuple[JSON, ...]:
    if info.context is not Trust.OURS:
        check_count(info.field_name or "list", len(value), LIMITS.labels)
        for item in value:
            check_text(info.field_name or "list", item)
    return value


Json = Annotated[JSON, AfterValidator(_checked_json)]
JsonObject = Annotated[dict[str, JSON], AfterValidator(_checked_json)]
JsonArray = Annotated[list[JSON], AfterValidator(_checked_json)]
Id = Annotated[str, AfterValidator(_checked_id)]
Name = Annotated[str, AfterValidator(_checked_name)]
Text = Annotated[str, AfterValidator(_checked_text)]
Few = Annotated[tuple[str, ...], AfterValidator(_checked_few)]
"""A short list of labels, reviewers or groups."""
Instant = Annotated[AwareDatetime, AfterValidator(lambda when: from_ms(to_ms(when)))]
"""An aware datetime, kept as UTC in whole milliseconds."""
Span = Annotated[timedelta, AfterValidator(lambda span: span // MILLISECOND * MILLISECOND)]
"""A timedelta in whole milliseconds."""
