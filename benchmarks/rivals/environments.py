"""An environment for each rival, made once and again when what it holds changes."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from .catalogue import Rival

HOME: Final = Path(__file__).resolve().parents[2] / ".rivals"
SECONDS: Final = 600.0
_QUIETLY: Final = ("--quiet", "--no-input", "--disable-pip-version-check")
_TELL: Final = (
    "import json, sys; from importlib.metadata import version; "
    "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
)


class CannotRun(Exception):
    """Something that a rival needs is not here. The text says what, and what to do."""


def interpreter(rival: Rival, home: Path = HOME) -> Path:
    """The Python of a rival's environment, made where needed. Raises `CannotRun`."""
    if not rival.packages:
        return Path(sys.executable)
    folder = home / rival.name
    python, stamp = folder / "bin" / "python", folder / "holds"
    holds = "\n".join((sys.version, *rival.packages))
    if stamp.exists() and stamp.read_text(encoding="utf-8") == holds:
        return python
    _do([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
    try:
        _do([sys.executable, "-m", "pip", "--python", str(python), "install", *_QUIETLY, *rival.packages])
    except CannotRun:
        shutil.rmtree(folder)
        raise
    stamp.write_text(holds, encoding="utf-8")
    return python


def _do(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{' '.join(command[1:4])} took longer than {SECONDS:.0f} s") from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "ERROR" in line] or error.stderr.splitlines()
        raise CannotRun((lines or ["pip failed without a word"])[-1].removeprefix("ERROR: ")) from None


def versions(rival: Rival, python: Path) -> dict[str, str]:
    """The packages asked for, as installed."""
    names = [re.split(r"[\[<>=~! ]", each)[0] for each in rival.packages]
    told = subprocess.run([str(python), "-c", _TELL, *names], check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, str] = json.loads(told.stdout)
    return found
