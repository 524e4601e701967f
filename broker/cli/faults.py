"""What a person or a program is told when something went wrong: one sentence, one code, no traceback.

Needs nothing but the library, so that it works where the extra `cli` is missing.
"""

from ..core.limits import JSON
from ..core.outcomes import Told
from ..errors import BrokerError, Refused
from .safe import machine_json, safe

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
TERMINATED = 143
"""The exit code after SIGTERM."""
BROKEN_PIPE = 141
"""The exit code when whoever read our output has gone."""
UNEXPECTED = 1
"""The exit code of a fault in the broker itself."""


def fault_facts(error: BrokerError) -> dict[str, JSON]:
    """An error as JSON: `code`, `exit_code` and `message` always, then its own facts (`field`, `problem`, ...)."""
    told: dict[str, JSON] = {"code": error.code, "exit_code": error.exit_code, "message": str(error)}
    if isinstance(error, Refused):
        return told | {"outcome": error.outcome.to_json() if isinstance(error.outcome, Told) else None}
    return told | {
        name: list(value) if isinstance(value, tuple) else value for name, value in vars(error).items()
    }


def fault_json(error: BrokerError) -> str:
    """The same on one line."""
    return machine_json(fault_facts(error))


def unexpected(error: BaseException) -> tuple[str, str]:
    """The sentence and the JSON for a fault nobody foresaw. Its own text may hold payloads and is left out."""
    name = safe(type(error).__name__)
    sentence = f"something went wrong inside the broker ({name}); with --debug it says where."
    return sentence, machine_json(
        {"code": "unexpected", "exit_code": UNEXPECTED, "message": sentence, "error": name}
    )
