"""`python -m broker.embedded --watch HOME`: the watchdog of one embedded server, started beside it."""

import argparse
from pathlib import Path

from .watch import watch


def main() -> None:
    """Read the command line and watch."""
    parser = argparse.ArgumentParser(
        prog="python -m broker.embedded", description="Stop an embedded server when idle."
    )
    parser.add_argument("--watch", type=Path, required=True, metavar="HOME", help="the home of the server")
    parser.add_argument(
        "--lock", type=int, metavar="FILE", help="the open file that holds the watchdog's lock"
    )
    arguments = parser.parse_args()
    watch(arguments.watch, arguments.lock)


if __name__ == "__main__":
    main()
