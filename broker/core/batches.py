"""What batches are made of: one pause, one answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .answers import Answer
from .models import Interrupt, InterruptState
from .states import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """One pause of a run that no worker of the broker holds: what `suspend` takes, as a value."""

    agent: str
    session: str
    interrupts: Sequence[Interrupt] = ()
    state: InterruptState | None = None
    key: str | None = None
    mode: Mode = Mode.ALL
    queue: str = "agents"
    build: str | None = None
    input: Any = field(default=None, repr=False)
    protocol_id: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerTo:
    """One answer to one interrupt: what `answer` takes, as a value."""

    interrupt_id: str
    answer: Answer
    seen: str | None = None
    op: str | None = None
