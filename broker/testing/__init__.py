"""For tests, ours and those of applications: real servers to kill and pause, a proxy that loses replies, leak checks.

Works without pytest. Nothing here imitates a server: what the broker promises rests on a real one. May import
`embedded` and what lies below it.
"""

from .discovery import RunningServer, ServerSource, find_servers, running
from .leaks import MAY_EXPIRE, leaked_keys
from .process import ServerProcess
from .proxy import FaultProxy
from .waiting import await_until, wait_until

__all__ = [
    "MAY_EXPIRE",
    "FaultProxy",
    "RunningServer",
    "ServerProcess",
    "ServerSource",
    "await_until",
    "find_servers",
    "leaked_keys",
    "running",
    "wait_until",
]
