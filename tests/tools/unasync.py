"""Write the blocking twin of the async sources, or check that the committed one is what would be written.

    python tests/tools/unasync.py            writes
    python tests/tools/unasync.py --check    compares whole texts and the set of files; exit code 1 and a diff

The conversion is a table of substitutions on the text, so names have to be regular: what cannot be said by the
table belongs in one of `HAND_WRITTEN`, which are written by hand on both sides with the same names. The
formatter runs over the result, since lines get shorter. A substitution that changes nothing anywhere is an error:
the table stays honest.
"""

import argparse
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

SUBSTITUTIONS: Final[tuple[tuple[str, str], ...]] = (
    # The language
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    # The standard library; what is awaited inside the brackets may have brackets of its own
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\baclosing\b", "closing"),
    # Ours, and the client's
    (r"\baclose\b", "close"),
    (r"\bAsyncBroker\b", "Broker"),
    (r"\bAsyncThreads\b", "Threads"),
    (r"\bAsyncAgentSession\b", "AgentSession"),
)
"""Pattern and replacement, applied in this order to the whole text."""

HAND_WRITTEN: Final = frozenset({"_fan.py", "_runtime.py", "_wire.py"})
"""Files of the same name on both sides that are never converted."""

ASYNC_ONLY: Final = frozenset({"_heard.py"})
"""Files that have no twin: loops that the blocking side runs in a thread instead."""


class Pair(NamedTuple):
    """A folder of async sources and the folder of its twin, relative to the checkout."""

    source: str
    twin: str


PAIRS: Final = (
    Pair("broker/_async", "broker/_sync"),
    Pair("broker/interop/agui/_async", "broker/interop/agui/_sync"),
    Pair("broker/interop/adk/_async", "broker/interop/adk/_sync"),
    Pair("tests/clients/_async", "tests/clients/_sync"),
)


class Problem(Exception):
    """The twin cannot be made, or is not what it should be; the text says what to do."""


def convert(text: str, used: set[str]) -> str:
    """The text in the blocking colour, not yet formatted; adds the patterns that changed something to `used`."""
    for pattern, replacement in SUBSTITUTIONS:
        text, count = re.subn(pattern, replacement, text)
        if count:
            used.add(pattern)
    return text


def header(source: str) -> str:
    return f"# Generated from {source} by tests/tools/unasync.py (make sync): do not edit.\n"


def ruff(text: str, path: Path, *command: str) -> str:
    """What `ruff` makes of the text, with the settings of the checkout."""
    arguments = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise Problem(f"ruff {command[0]} cannot read what became of {path}:\n{done.stderr or done.stdout}")
    return done.stdout


def finish(text: str, path: Path) -> str:
    """Imports in order (their names have changed), then formatted."""
    return ruff(
        ruff(text, path, "check", "--fix-only", "--quiet", "--select", "I001"), path, "format", "--quiet"
    )


def sources(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name relative to the folder, and path, of every Python file, sorted."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder).as_posix(), path


def expected(root: Path) -> dict[Path, str]:
    """Path and whole text of every file of the twins, as the async sources say."""
    used: set[str] = set()
    texts: dict[Path, str] = {}
    for pair in PAIRS:
        for name, path in sources(root / pair.source):
            if name in HAND_WRITTEN | ASYNC_ONLY:
                continue
            twin = root / pair.twin / name
            text = convert(path.read_text(encoding="utf-8"), used)
            texts[twin] = header(f"{pair.source}/{name}") + finish(text, twin) if text else ""
    unused = [pattern for pattern, _ in SUBSTITUTIONS if pattern not in used]
    if texts and unused:
        raise Problem(f"These substitutions change nothing, take them out of the table: {unused}")
    return texts


def strangers(root: Path, texts: dict[Path, str]) -> list[str]:
    """Complaints about files that one side has and the other should or should not have."""
    found = []
    for pair in PAIRS:
        for name, path in sources(root / pair.twin):
            if name not in HAND_WRITTEN and path not in texts:
                found.append(f"{pair.twin}/{name} has no source in {pair.source}")
        for name in sorted(HAND_WRITTEN):
            sides = [(root / side / name).exists() for side in pair]
            if sides[0] != sides[1]:
                found.append(f"{name} is written by hand: it has to be in {pair.source} and in {pair.twin}")
    return found


def check(root: Path) -> list[str]:
    """Complaints, empty when the committed twin is exactly what the sources say."""
    texts = expected(root)
    complaints = strangers(root, texts)
    for path, text in texts.items():
        name = path.relative_to(root).as_posix()
        if not path.exists():
            complaints.append(f"{name} is missing")
            continue
        # Whole texts: a comparison line by line would miss what stands after the shorter one's end.
        there = path.read_text(encoding="utf-8")
        if there != text:
            lines = difflib.unified_diff(
                there.splitlines(), text.splitlines(), name, "generated", lineterm=""
            )
            complaints.append(f"{name} differs from what its source gives:\n" + "\n".join(lines))
    return complaints


def write(root: Path) -> int:
    """Writes the twins and removes files of theirs that have no source; gives the number of files written."""
    texts = expected(root)
    for pair in PAIRS:
        for name, path in sources(root / pair.twin):
            if name not in HAND_WRITTEN and path not in texts:
                path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return len(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 when written or right, 1 when not."""
    parser = argparse.ArgumentParser(description="Write or check the blocking twin of the async sources.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    try:
        if not options.check:
            print(f"unasync: {write(ROOT)} files written")
            return 0
        complaints = check(ROOT)
    except Problem as problem:
        complaints = [str(problem)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        print("unasync: run `make sync`", file=sys.stderr)
        return 1
    print("unasync: the twin is what its sources say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
