"""`python -m benchmarks.rivals`: install the rivals, run everybody in interleaved rounds, print one table."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from . import contest
from .catalogue import RIVALS, chosen
from .environments import HOME
from .report import report


def main(words: Sequence[str] | None = None) -> int:
    """Does what the words say. The exit code is 1 where the broker or the floor lost or doubled a resume."""
    asked = _parser().parse_args(words)
    found = contest.run(
        chosen(asked.only),
        max(asked.rounds, 1),
        tiny=asked.tiny,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(report(found))
    faults = contest.faults(found)
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--only", nargs="+", default=[], choices=[rival.name for rival in RIVALS])
    parser.add_argument("--out", type=Path, default=HOME / "latest.json", help="the results file")
    parser.add_argument("--tiny", action="store_true", help="a few lifecycles, to see that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
