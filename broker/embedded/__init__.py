"""The embedded server: one real Redis or Valkey per home, started by whoever needs it first, shared by all.

May import `errors`. It talks to the server in a few raw lines of its own (`resp`), so that it works before there is
anything to connect a client to.
"""

from .binaries import REMEDIES, Family, ServerBinary
from .flags import SERVER_FLAGS
from .home import default_home
from .server import Embedded, down, ensure, info, is_up, resolve

__all__ = [
    "REMEDIES",
    "SERVER_FLAGS",
    "Embedded",
    "Family",
    "ServerBinary",
    "default_home",
    "down",
    "ensure",
    "info",
    "is_up",
    "resolve",
]
