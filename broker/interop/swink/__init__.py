"""swink: its interrupt file, its store of interrupts, its approval requests and answers, and its approval modes.

`read_interrupt` and `write_interrupt` are the file, byte for byte. `BrokerStore` keeps what swink keeps in files in a
broker, `FileStore` is the folder itself. `Approvals` decides which calls are asked about, and lets policies see them.
"""

from .approvals import SESSION_TRUST, ApprovalMode, Approvals
from .decisions import ApprovalRequest, decision_of, read_decision, write_decision
from .files import FileStore
from .hiding import HIDDEN, hidden
from .policies import Policy, PolicyRefusal, Skip, Stop, TurnStopped
from .snapshots import SUFFIX, check_session_id, read_interrupt, write_interrupt
from .stores import BrokerStore, InterruptStore

__all__ = [
    "HIDDEN",
    "SESSION_TRUST",
    "SUFFIX",
    "ApprovalMode",
    "ApprovalRequest",
    "Approvals",
    "BrokerStore",
    "FileStore",
    "InterruptStore",
    "Policy",
    "PolicyRefusal",
    "Skip",
    "Stop",
    "TurnStopped",
    "check_session_id",
    "decision_of",
    "hidden",
    "read_decision",
    "read_interrupt",
    "write_decision",
    "write_interrupt",
]
