"""Why a dispatch paused: an open union on entelix's wire, exactly (`{"type": "custom"}` and so on).

Kinds may be added in a minor release: a `match` over them needs `case _`. A kind this release does not know arrives
as `UnknownKind` with everything it had, is listed as active, and is never settled automatically.
"""

from enum import StrEnum
from typing import ClassVar

from .fields import Id
from .limits import JSON
from .shape import Tagged


class Phase(StrEnum):
    """Whether a scheduled pause fired before or after its node ran. Closed: another word is refused (E3)."""

    BEFORE = "before"
    AFTER = "after"


class InterruptionKind(Tagged):
    """Why a run paused. Open: match on the classes below and keep a `case _`."""

    TAG_KEY: ClassVar[str] = "type"

    @property
    def type(self) -> str:
        """The word on the wire."""
        return self.TAG

    @property
    def label(self) -> str:
        """A few words for a list or a card."""
        return self.type


class Custom(InterruptionKind):
    """A pause the agent's author defined; its meaning is in the payload. The default kind."""

    TAG: ClassVar[str] = "custom"


class ApprovalPending(InterruptionKind):
    """A tool call waits for somebody's decision. `tool_use_id` is the model's id of that call."""

    TAG: ClassVar[str] = "approval_pending"
    SHOWN: ClassVar[tuple[str, ...]] = ("tool_use_id",)

    tool_use_id: Id

    @property
    def label(self) -> str:
        """A few words for a list or a card."""
        return "approval pending"


class ScheduledPause(InterruptionKind):
    """A graph's own pause point fired `phase` (before or after) its `node`."""

    TAG: ClassVar[str] = "scheduled_pause"
    SHOWN: ClassVar[tuple[str, ...]] = ("phase", "node")

    phase: Phase
    node: Id

    @property
    def label(self) -> str:
        """`paused before <node>` or `paused after <node>`."""
        return f"paused {self.phase} {self.node}"


class UnknownKind(InterruptionKind):
    """A kind of another version, kept whole in `raw`. Only an explicit act of a person settles it."""

    SHOWN: ClassVar[tuple[str, ...]] = ("type",)

    raw: dict[str, JSON]

    @property
    def type(self) -> str:
        """The word on the wire."""
        return str(self.raw.get("type", ""))

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


InterruptionKind.VARIANTS = {kind.TAG: kind for kind in (Custom, ApprovalPending, ScheduledPause)}
InterruptionKind.OTHER = UnknownKind


def parse_kind(data: JSON) -> InterruptionKind:
    """The kind behind its JSON. Refuses a missing type, a missing or null `tool_use_id` and a bad phase (E3)."""
    return InterruptionKind.from_json(data)
