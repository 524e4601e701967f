"""The project stands alone: nothing in it names the machine it was written on, or where that gets packages."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each pattern has a letter in brackets, so that it does not match itself.
FOREIGN = re.compile(
    r"""
      (?<![\w.])/(?:[w]ork|[r]oot|[h]ome/\w+|[U]sers/\w+|tmp/[p]lan|opt/[p]ypi|opt/[w]heels)\b
    | \b[C]:\\Users
    | (?:[e]xtra-)?[i]ndex-url | [P]IP_(?:[E]XTRA_)?INDEX_URL | [U]V_(?:DEFAULT_)?INDEX
    | [p]ypi\.org/simple | [p]ythonhosted\.org | [t]rusted-host
    """,
    re.VERBOSE,
)


def hidden(path: Path) -> bool:
    """Whether a path is in an environment, a cache or another folder that is not the project's."""
    folders = path.relative_to(ROOT).parts[:-1]
    return any(part == "__pycache__" or (part.startswith(".") and part != ".ci") for part in folders)


def files() -> list[Path]:
    """What is in the repository or would be after `git add`; without a repository, everything in sight."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        names = [path for path in ROOT.rglob("*") if not hidden(path)]
    return [path for path in names if path.is_file()]


def test_nothing_names_this_machine() -> None:
    found = []
    for path in files():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in FOREIGN.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "see /w" + "ork/x",
        "cd /r" + "oot",
        "/h" + "ome/me/x",
        "--i" + "ndex-url=x",
        "PIP_IN" + "DEX_URL",
        "p" + "ypi.org/simple",
    ],
)
def test_foreign_text_is_noticed(text: str) -> None:
    assert FOREIGN.search(text)


@pytest.mark.parametrize("text", ["/usr/bin/redis-server", "the work/rest balance", "https://host/root.html"])
def test_ordinary_text_is_not(text: str) -> None:
    assert not FOREIGN.search(text)
