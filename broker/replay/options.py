"""What a replay is to do: which runs, with whom, and what goes wrong meanwhile."""

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Final

from ..core.settings import Settings
from ..errors import InvalidInput
from .transcripts import Rules, read_rules

MOST_PROCESSES: Final = 256
MOST_MERGED: Final = 64
SHORTEST_PERIOD: Final = 0.05
LONGEST_PACE: Final = 3600.0

THINKING: Final = 0.1
"""The pace where something is killed and none is asked for: a replay at full speed is over before the second kill."""

HARD_TIMES: Final = Settings(
    lease=timedelta(seconds=3), sweep_every=timedelta(seconds=0.5), backoff_first=timedelta(seconds=0.1),
    backoff_most=timedelta(seconds=1), tries=1000,
)  # fmt: skip
"""The namespace where something is killed: what a dead worker held is offered again after some three seconds, and
that its worker was killed is never a run's own failure."""


def any_seed() -> int:
    """A seed of a replay's own choice."""
    return secrets.randbelow(2**32)


@dataclass(frozen=True, slots=True)
class Options:
    """What to replay, and with whom. None for `confirm` and `long`: what the TOML file beside the runs says.

    Without a `url` the replay has a server of its own, gone afterwards. A namespace is new each time unless one is
    named; it should be the replay's alone. On a server given by URL it stays, to be looked at.

    `kill_worker_every` and `restart_server_every` are seconds between two kills; `merge_turns` joins turns of the
    record to turns of so many calls; `pace` is how long each turn of the model and each tool takes, in seconds (None:
    0, and `THINKING` where something is killed); `seed` chooses who is killed.
    """

    runs: Path
    workers: int = 3
    approvers: int = 2
    confirm: frozenset[str] | None = None
    long: frozenset[str] | None = None
    url: str | None = None
    namespace: str | None = None
    history: Path | None = None
    effects: Path | None = None
    timeout: float = 300.0
    concurrency: int = 8
    kill_worker_every: float | None = None
    restart_server_every: float | None = None
    merge_turns: int = 1
    pace: float | None = None
    seed: int = field(default_factory=any_seed)

    def __post_init__(self) -> None:
        _within("workers", self.workers, 1, MOST_PROCESSES)
        _within("approvers", self.approvers, 1, MOST_PROCESSES)
        _within("merge_turns", self.merge_turns, 1, MOST_MERGED)
        _within("pace", self.pace, 0, LONGEST_PACE)
        _within("kill_worker_every", self.kill_worker_every, SHORTEST_PERIOD)
        _within("restart_server_every", self.restart_server_every, SHORTEST_PERIOD)
        if self.restart_server_every is not None and self.url is not None:
            raise InvalidInput(
                "restart_server_every", "would kill a server that is not the replay's own", "no url"
            )

    @property
    def is_rough(self) -> bool:
        """Whether something is killed."""
        return self.kill_worker_every is not None or self.restart_server_every is not None

    @property
    def settings(self) -> Settings | None:
        """How the namespace is to behave; None: as the server says."""
        return HARD_TIMES if self.is_rough else None

    @property
    def thinking(self) -> float:
        """How long each turn and each tool takes, in seconds."""
        return self.pace if self.pace is not None else THINKING if self.is_rough else 0.0

    def rules(self) -> Rules:
        """Which tools pause."""
        given = self.confirm, self.long
        beside = read_rules(self.runs) if None in given else Rules()
        return Rules(
            beside.confirm if self.confirm is None else self.confirm,
            beside.long if self.long is None else self.long,
        )


def _within(name: str, value: float | None, least: float, most: float = inf) -> None:
    if value is not None and not least <= value <= most:
        raise InvalidInput(
            name, "is out of range", f"{least:g} to {most:g}" if most < inf else f"{least:g} at least"
        )
