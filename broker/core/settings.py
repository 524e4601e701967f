"""Every setting of a namespace with its unit and default, in one frozen value."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from ..errors import InvalidInput
from .durability import Durability
from .fields import Span
from .limits import LIMITS, Limits
from .shape import Model


def _positive(span: timedelta) -> timedelta:
    if span <= timedelta():
        msg = "a timedelta above zero"
        raise ValueError(msg)
    return span


Period = Annotated[Span, AfterValidator(_positive)]


class Settings(Model):
    """How a namespace behaves. Spans are timedeltas; in the environment they are seconds (`BROKER_LEASE=15`)."""

    lease: Period = timedelta(seconds=15)
    """How long a worker holds a run without renewing."""
    renew_fraction: float = Field(0.25, gt=0, le=0.5)
    """The part of a lease after which it is renewed."""
    tries: int = Field(10, ge=1, le=1000)
    """Failed attempts before a run is dead-lettered."""
    sweep_every: Period = timedelta(seconds=1)
    """The sweeper's period: lost bells are rung again within two of these."""
    backoff_first: Period = timedelta(seconds=1)
    """The wait before a failed run comes back, doubled at each further failure."""
    backoff_most: Period = timedelta(minutes=5)
    """The longest such wait."""
    deadline: Period | None = timedelta(hours=24)
    """The deadline of an interrupt that names none; None is never."""
    keep_settled: Period = timedelta(hours=1)
    """How long the records of a closed run stay."""
    keep_history: Period = timedelta(days=7)
    """How long a session's history stays."""
    keep_parked: Period = timedelta(minutes=10)
    """How long an answer that came before its question waits for it."""
    retry_window: Period = timedelta(minutes=10)
    """How long a creating request may be repeated (`not_after`); shorter than `keep_settled`."""
    durability: Durability | None = None
    """What every write must reach before its caller is told; None is the strongest class that costs no further wait."""
    confirm_within: Period = timedelta(seconds=3)
    """How long a call waits for that class, where it has to wait, before it is told that it was not reached."""
    limits: Limits = LIMITS
    """The sizes that are accepted."""

    def model_post_init(self, context: object) -> None:  # noqa: ARG002 - pydantic's signature
        """Refuse settings that would let a repeat make a second run after the first was deleted (rule 15)."""
        if self.retry_window >= self.keep_settled or self.keep_parked > self.keep_settled:
            raise InvalidInput(
                "retry_window",
                "or keep_parked reaches beyond keep_settled",
                "less than the time settled records stay",
            )

    @property
    def renew_every(self) -> timedelta:
        """How often a held lease is renewed."""
        return self.lease * self.renew_fraction

    @classmethod
    def from_env(cls, env: Mapping[str, str], prefix: str = "BROKER_") -> Self:
        """The settings of an environment, for the edges; what is not set keeps its default."""
        given: dict[str, Any] = {}
        for name in cls.model_fields:
            text = env.get(f"{prefix}{name.upper()}")
            if text and name not in ("limits", "unknown"):
                given[name] = _parse(cls, name, text, f"{prefix}{name.upper()}")
        return cls(**given)


def _parse(cls: type[Settings], name: str, text: str, variable: str) -> object:
    default = cls.model_fields[name].default
    try:
        if name == "durability":
            return Durability.parse(text)
        if isinstance(default, timedelta):
            return None if text == "never" else timedelta(seconds=float(text))
        return type(default)(text)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(
        variable, "cannot be read", "a number" if not isinstance(default, timedelta) else "seconds"
    )
