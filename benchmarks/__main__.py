"""`python -m benchmarks`: measure, compare two results, or profile the client."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import comparison, results, tables


def main(words: Sequence[str] | None = None) -> int:
    """Does what the words say. The exit code is 1 where a resume was lost or doubled."""
    asked = _parser().parse_args(words)
    commands = {"run": _run, "compare": _compare, "profile": _profile}
    return commands[asked.command or "run"](asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    for each in (parser, commands.add_parser("run", help="measure (what is done without a command)")):
        each.add_argument("--full", action="store_true", help="all measures, for the better part of an hour")
        each.add_argument(
            "--rounds", type=int, help="interleaved rounds (3; 5 with --full), fewer where one is long"
        )
        each.add_argument(
            "--only", nargs="+", choices=results.PARTS, metavar="PART", help=", ".join(results.PARTS)
        )
        each.add_argument("--runs", type=Path, help="recorded runs, for the memory they take while they wait")
        each.add_argument(
            "--out", type=Path, help="the results file (results/short.json; results/latest.json)"
        )
        each.add_argument("--tiny", action="store_true", help="a few lifecycles, to see that it runs")
        each.add_argument("--no-plot", action="store_true", help="no picture beside the results file")
    two = commands.add_parser("compare", help="two results beside one another")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    profile = commands.add_parser("profile", help="the functions of the client that take most of its time")
    profile.add_argument("--count", type=int, default=200, help="calls of each operation")
    profile.add_argument("--lines", type=int, default=12, help="functions shown for each")
    return parser


def _run(asked: argparse.Namespace) -> int:
    size = "full" if asked.full else "short"
    found = results.collect(
        parts=tuple(asked.only or (results.PARTS if asked.full else results.QUICK)),
        rounds=1 if asked.tiny else max(asked.rounds or results.ROUNDS[size], 1),
        tiny=asked.tiny,
        say=lambda line: print(line, file=sys.stderr, flush=True),
        runs=asked.runs,
    )
    out = asked.out or results.FOLDER / ("latest.json" if asked.full else "short.json")
    results.write(found, out)
    print(tables.report(found))
    if not asked.no_plot:
        from .plot import draw  # noqa: PLC0415 - measuring needs no plotting library

        draw(found, out.with_suffix(".svg"))
    faults = results.faults(found)
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


def _compare(asked: argparse.Namespace) -> int:
    print(comparison.compare(results.read(asked.old), results.read(asked.new)))
    return 0


def _profile(asked: argparse.Namespace) -> int:
    from .micro import profile  # noqa: PLC0415 - for those who ask

    print(profile.run(asked.count, asked.lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
