"""The fields of a run's and of an interrupt's record, and the short names they have on the server.

Everything else calls a field by its long name: scripts write `f.lease_until` and are rendered with the short one, and
what readers unpack is named by `FIELDS` backwards. A record is written whole at each step, so its names count.
"""

from collections.abc import Mapping
from typing import Final

FIELDS: Final[dict[str, str]] = {
    # of both
    "session": "s",
    "queue": "q",
    "agent": "a",
    "build": "b",
    "mode": "m",
    "state": "st",
    "seq": "n",
    # of a run
    "priority": "p",
    "fence": "f",
    "tries": "t",
    "left": "l",
    "created": "c",
    "start_op": "so",
    "suspend_op": "po",
    "suspend_digest": "pd",
    "suspended": "pt",
    "ids": "i",
    "fresh": "fr",
    "shown": "sh",
    "nonce": "no",
    "holder": "h",
    "lease_until": "lu",
    "ready_at": "ra",
    "handed": "hd",
    "refused": "rf",
    "withdraw_op": "wo",
    "requeue_op": "ro",
    "entries": "en",
    "bytes": "by",
    "cut": "cu",
    "said": "sd",
    # of an interrupt
    "run": "r",
    "kind": "k",
    "audience": "au",
    "tool": "tl",
    "call": "cl",
    "action": "ac",
    "digest": "d",
    "offers": "of",
    "labels": "la",
    "label": "lb",
    "expiry": "e",
    "deadline": "dl",
    "beat": "hb",
    "beat_by": "hu",
    "missed": "hm",
    "default_kind": "dk",
    "default_mark": "dm",
    "default_action": "da",
    "opened": "o",
    "number": "nr",
    "bell": "be",
    "asked": "as",
    "spent": "sp",
    "op": "op",
    "by": "w",
    "at": "at",
    "answer": "an",
    "mark": "mk",
    "why": "wy",
    "approved": "ap",
    "verdict": "v",
}

_LONG: Final = {short.encode(): name for name, short in FIELDS.items()}


def named(stored: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """The fields of a record by their long names; those of another release keep the name they have."""
    return {_LONG.get(short) or short.decode(): value for short, value in stored.items()}
