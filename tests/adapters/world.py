"""What the processes of a test share: a folder with what the tools did, and gates that hold them up."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.testing import wait_until

PATIENCE: Final = 120.0


class Effect(NamedTuple):
    """One thing a tool did: which, with what, under which key, in which process."""

    what: str
    given: Any
    key: str
    pid: int


@dataclass(frozen=True)
class World:
    """The folder of one test. Effects are lines of a file that outlives whoever wrote them."""

    folder: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    def effect(self, what: str, given: Any, key: str) -> None:
        """Notes what a tool did. Where the test holds effects up, it stays here after that."""
        with (self.folder / "effects").open("a") as file:
            file.write(json.dumps([what, given, key, os.getpid()]) + "\n")
        held = self.folder / "hold"
        if held.exists():
            wait_until(lambda: not held.exists(), PATIENCE, what="the test lets go")

    @property
    def effects(self) -> list[Effect]:
        """What was done so far."""
        path = self.folder / "effects"
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0]
        return [Effect(*json.loads(line)) for line in whole.splitlines()]

    def hold(self) -> None:
        """From now on a tool that has had its effect does not return."""
        (self.folder / "hold").touch()

    def let_go(self) -> None:
        """Until now."""
        (self.folder / "hold").unlink()
