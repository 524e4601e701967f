"""What the hand-written floors share: two streams with a group each, a hash per run, and nothing of a product.

No lease, no recovery of what a dead process held, no deadline, no second answer told who was first, no history: a
product has to pay for those.
"""

import json
from typing import Any, Final

import redis

from benchmarks.workload import TOOL, decision, dumps, snapshot

ASKED: Final = "asked"
DECIDED: Final = "decided"
GROUP: Final = "all"
BLOCK_MS: Final = 200


def run_key(number: int) -> str:
    """The hash that holds a run: its state and who claimed it."""
    return f"run:{number}"


def prepare(url: str) -> None:
    """Makes both groups."""
    with redis.Redis.from_url(url) as client:
        for stream in (ASKED, DECIDED):
            client.xgroup_create(stream, GROUP, id="$", mkstream=True)


def facts(url: str, count: int, mark: str = "") -> dict[str, float]:  # noqa: ARG001 - every variant is asked the same
    """Nothing is kept by hand."""
    return {}


def store(pipe: Any, number: int) -> None:
    """Adds the commands that pause a run."""
    pipe.hset(run_key(number), mapping={"state": dumps(snapshot(number)), "is": "waiting"})
    pipe.xadd(ASKED, {"run": number, "tool": TOOL})


def say(pipe: Any, number: int) -> None:
    """Adds the command that approves it."""
    pipe.xadd(DECIDED, {"decision": dumps(decision(number))})


def claim(pipe: Any, number: int, who: str) -> None:
    """Adds the commands that claim a run for one process and load its state."""
    pipe.hsetnx(run_key(number), "claimed", who)
    pipe.hget(run_key(number), "state")


def forget(pipe: Any, number: int) -> None:
    """Adds the command that removes a run."""
    pipe.delete(run_key(number))


def acknowledge(pipe: Any, stream: str, *entries: bytes) -> None:
    """Adds the commands that acknowledge entries and remove them."""
    pipe.xack(stream, GROUP, *entries)
    pipe.xdel(stream, *entries)


def is_whole(won: Any, state: bytes | None, number: int) -> bool:
    """Whether this process won the claim; the state is read in full, as an agent would need it."""
    if not won or state is None:
        return False
    return bool(json.loads(state)["pending"]["arguments"]["order_id"] == f"ord-{number:08d}")


def asked(fields: Any) -> int:
    """The run that an entry of the first stream is about."""
    return int(fields[b"run"])


def decided(fields: Any) -> int:
    """The run that an entry of the second stream is about."""
    said = json.loads(fields[b"decision"])
    if said["action"] != "approve":
        raise ValueError(said["action"])
    return int(said["run"])
