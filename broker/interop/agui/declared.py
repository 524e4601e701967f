"""What an agent declares: the version of the protocol it speaks, and what people can do in its loop."""

import re
from typing import Final

from pydantic import StrictBool

from ...errors import InvalidInput
from .shapes import RunAgentInput, RunStarted, Shape

PROTOCOL_VERSION: Final = "1.0"
"""The version of AG-UI spoken here."""

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")
_OURS: Final = (1, 0)


class HumanInTheLoop(Shape):
    """What an agent declares about people in its loop. Unset is undeclared, which is not unsupported."""

    supported: StrictBool | None = None
    approvals: StrictBool | None = None
    interventions: StrictBool | None = None
    feedback: StrictBool | None = None
    interrupts: StrictBool | None = None
    approve_with_edits: StrictBool | None = None


class Capabilities(Shape):
    """What an agent declares about itself, as far as the broker has to do with it; the rest is kept as it came."""

    human_in_the_loop: HumanInTheLoop | None = None


CAPABILITIES: Final = Capabilities(
    human_in_the_loop=HumanInTheLoop(supported=True, approvals=True, interrupts=True, approve_with_edits=True)
)
"""What an agent behind the broker can declare: `CAPABILITIES.to_json()`."""


def run_started(request: RunAgentInput) -> RunStarted:
    """The event that begins the run which a request asks for."""
    return RunStarted(
        thread_id=request.thread_id,
        run_id=request.run_id,
        protocol_version=PROTOCOL_VERSION,
        parent_run_id=request.parent_run_id,
    )


def version_warnings(version: str | None) -> tuple[str, ...]:
    """What there is to say of the version that the other side speaks: nothing, or why it may miss something.

    A newer minor version is served (1.10 is newer than 1.9). Raises `InvalidInput` for another major version.
    """
    if version is None:
        return ()
    found = _VERSION.fullmatch(version)
    if found is None:
        return ("protocolVersion is no version; taken as 1.0",)
    theirs = int(found[1]), int(found[2])
    if theirs[0] != _OURS[0]:
        raise InvalidInput("protocolVersion", "is of another major version", "1.0, or a newer 1.x")
    return (f"protocolVersion {version} is newer than {PROTOCOL_VERSION}",) if theirs > _OURS else ()
