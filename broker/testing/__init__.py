"""For tests, ours and those of applications: agents on trial, real servers to kill, a proxy that loses replies.

Works without pytest; with it, the fixture `testbed` is there. Nothing here imitates a server: what the broker promises
rests on a real one. May import `worker`, `embedded` and what lies below them.
"""

from .answering import (
    Script,
    Spoken,
    Unanswered,
    answer,
    approve,
    complete,
    edit,
    fail,
    late,
    never,
    reject,
    respond,
    twice,
)
from .clock import MOVABLE, Clock
from .crashing import Crashes, CrashUnsafe, Trip
from .discovery import RunningServer, ServerSource, find_servers, running
from .effects import effect, happened
from .interleaving import Interleaving
from .leaks import MAY_EXPIRE, leaked_keys, remove_namespaces
from .process import ServerProcess
from .proxy import FaultProxy
from .testbed import Testbed
from .waiting import await_until, wait_until

__all__ = [
    "MAY_EXPIRE",
    "MOVABLE",
    "Clock",
    "CrashUnsafe",
    "Crashes",
    "FaultProxy",
    "Interleaving",
    "RunningServer",
    "Script",
    "ServerProcess",
    "ServerSource",
    "Spoken",
    "Testbed",
    "Trip",
    "Unanswered",
    "answer",
    "approve",
    "await_until",
    "complete",
    "edit",
    "effect",
    "fail",
    "find_servers",
    "happened",
    "late",
    "leaked_keys",
    "never",
    "reject",
    "remove_namespaces",
    "respond",
    "running",
    "twice",
    "wait_until",
]
