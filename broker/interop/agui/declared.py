"""What an agent declares: the version of the protocol it speaks, and what people can do in its loop."""

import re
from typing import Final

from pydantic import StrictBool

from ...errors import InvalidInput
from .shapes import RunAgentInput, RunStarted, Shape

PROTOCOL_VERSION: Final = "1.0"
"""The version of AG-UI spoken here."""

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")


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


def is_newer(one: str, than: str) -> bool:
    """Whether a version is newer than another, by its numbers: 1.10 is newer than 1.9. Raises `InvalidInput`."""
    return _numbers(one) > _numbers(than)


def version_warnings(version: str | None) -> tuple[str, ...]:
    """What there is to say of the version that the other side speaks: nothing, or why it may miss something.

    A newer minor version is served. Raises `InvalidInput` for another major version, and for what is no version.
    """
    if version is None:
        return ()
    if _numbers(version)[0] != _numbers(PROTOCOL_VERSION)[0]:
        raise InvalidInput("protocolVersion", "is of another major version", "1.0, or a newer 1.x")
    newer = is_newer(version, PROTOCOL_VERSION)
    return (f"protocolVersion {version} is newer than {PROTOCOL_VERSION}",) if newer else ()


def _numbers(version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise InvalidInput("protocolVersion", "is no version", "two numbers: 1.0")
    return int(found[1]), int(found[2])
