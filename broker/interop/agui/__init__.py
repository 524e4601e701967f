"""AG-UI 1.0: its interrupts, outcomes and resumes, exactly, for runs that pause in the broker."""

from ...core.dispositions import SubagentOutcome
from .shapes import (
    CAPABILITIES,
    PROTOCOL_VERSION,
    Cancelled,
    Capabilities,
    HumanInTheLoop,
    Interrupt,
    Interrupted,
    ResumeEntry,
    RunAgentInput,
    RunFinished,
    RunOutcome,
    Success,
    UnknownOutcome,
    read_compat,
)

__all__ = [
    "CAPABILITIES",
    "PROTOCOL_VERSION",
    "Cancelled",
    "Capabilities",
    "HumanInTheLoop",
    "Interrupt",
    "Interrupted",
    "ResumeEntry",
    "RunAgentInput",
    "RunFinished",
    "RunOutcome",
    "SubagentOutcome",
    "Success",
    "UnknownOutcome",
    "read_compat",
]
