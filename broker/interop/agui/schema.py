"""JSON Schemas of AG-UI's shapes, drawn from what the readers use: what a schema refuses, the strict reader refuses."""

from typing import Final

from ...core.dispositions import SubagentOutcome
from ...core.limits import JSON
from ...core.schema import complete, described
from ...core.shape import Model
from . import declared, shapes

_SHAPES: Final[tuple[type[Model], ...]] = (
    shapes.Interrupt,
    shapes.ResumeEntry,
    shapes.RunAgentInput,
    shapes.RunStarted,
    shapes.RunFinished,
    shapes.RunError,
    SubagentOutcome,
    declared.HumanInTheLoop,
    declared.Capabilities,
)


def schemas() -> dict[str, dict[str, JSON]]:
    """Every shape's JSON Schema, by class name. Optional is absent, never null."""
    every = described((shapes.RunOutcome,), _SHAPES)
    return {name: complete(name, every) for name in every}
