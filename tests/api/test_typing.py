"""What a type checker tells a user of the library, without plugins and as strict as it gets.

The programs in `typing/` mark each line that has to be refused: `# E: code, code`. They are compared whole, so an
error that is missing and one that is too many both fail.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("typing")
MARK = re.compile(r"#\s*E:\s*(?P<codes>[\w, -]+)")
REPORT = re.compile(r"^(?P<file>[^:]+\.py):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$", re.MULTILINE)

Fault = tuple[str, int, str]


def marked() -> set[Fault]:
    return {
        (path.name, number, code.strip())
        for path in sorted(PROGRAMS.glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (mark := MARK.search(line))
        for code in mark["codes"].split(",")
    }


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> set[Fault]:
    options = ["--strict", "--config-file=", "--enable-error-code=exhaustive-match", "--no-error-summary"]
    cache = f"--cache-dir={tmp_path_factory.mktemp('mypy')}"
    command = [sys.executable, "-m", "mypy", *options, cache, *(path.name for path in PROGRAMS.glob("*.py"))]
    done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return {(found["file"], int(found["line"]), found["code"]) for found in REPORT.finditer(done.stdout)}


def test_what_has_to_be_refused_is_refused(reported: set[Fault]) -> None:
    assert sorted(marked() - reported) == []


def test_what_is_right_is_left_alone(reported: set[Fault]) -> None:
    assert sorted(reported - marked()) == []
