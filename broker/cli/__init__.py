"""The `broker` command, floor 5: looks at what waits, answers it, and runs the demo. Needs the extra `cli`.

Nothing here is imported by the library, and `main` is the only name that others use.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ..errors import MissingExtra
from .faults import fault_json

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of one command line (default: this process's). Prints; never raises and never shows a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    if find_spec("typer") is None or find_spec("rich") is None:
        error = MissingExtra("cli", "The command `broker`")
        sys.stderr.write(f"{fault_json(error) if '--json' in words else f'broker: {error}'}\n")
        return error.exit_code
    from .entry import run  # noqa: PLC0415 - needs the extra

    return run(words)
