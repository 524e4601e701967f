"""What an approver said, read back. Needs no package."""

from typing import Any


def approved(said: Any) -> int:
    """The run that a decision lets go on. Raises `ValueError` for another decision."""
    if said["action"] != "approve":
        raise ValueError(said["action"])
    return int(said["run"])
