"""The commands that pages show: what they are, whether they exist, and which of them a test can run."""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import ROOT

RUNNABLE: Final = ("python", "broker")
LOOKED_AT: Final = ("pip", "curl", "make", "docker", "redis-cli", "kill", "export", "git", "cd")


def commands(block: str) -> Iterator[list[str]]:
    """The words of each command of a block, without comments and settings of the environment before it."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            del words[0]
        if words:
            yield words


def can_run(words: Sequence[str]) -> bool:
    """Whether a command can be run in a test: a program of the page, or ours."""
    return words[0] in RUNNABLE


def resolved(words: Sequence[str]) -> list[str]:
    """The command with the interpreter of this test run."""
    head = {"python": [sys.executable], "broker": [sys.executable, "-m", "broker"]}[words[0]]
    return [*head, *words[1:]]


def faults(block: str, folder: Path) -> list[str]:
    """What is wrong with the commands of a block: one sentence for each that does not exist."""
    found = []
    for words in commands(block):
        looker = _LOOKERS.get(words[0])
        if looker is not None:
            found += [f"{' '.join(words)}: {fault}" for fault in looker(words[1:], folder)]
        elif words[0] not in LOOKED_AT:
            found.append(f"{words[0]} is no command that these pages use")
    return found


def _pip(words: list[str], _: Path) -> Iterator[str]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if words[0] != "install":
        yield "only pip install is shown"
    for word in words[1:]:
        match = re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?", word)
        if match is None or match[1] != project["name"]:
            yield f"{word} is not this distribution"
        elif unknown := set((match[2] or "").split(",")) - {"", *project["optional-dependencies"]}:
            yield f"there is no extra {unknown}"


def _make(words: list[str], _: Path) -> Iterator[str]:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for word in words:
        if word not in targets:
            yield f"there is no target {word}"


def _python(words: list[str], folder: Path) -> Iterator[str]:
    if words[0] not in ("-m", "-c") and not (folder / words[0]).exists():
        yield f"{words[0]} is no file of the page"


def _broker(words: list[str], _: Path) -> Iterator[str]:
    from tests.tools import command_pages  # noqa: PLC0415 - needs what the environments of adapters do not have

    command = command_pages.group()
    taking = {option for one in command.params if not getattr(one, "is_flag", False) for option in one.opts}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in taking else 1]
    if not rest:
        return
    leaves = command_pages.leaves()
    name = next((name for name in (rest[0], " ".join(rest[:2])) if name in leaves), None)
    if name is None:
        yield f"there is no command {rest[0]}"
        return
    sub = leaves[name]
    known = {option for parameter in sub.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in known:
            yield f"{name} has no option {word}"


_LOOKERS: Final = {"pip": _pip, "make": _make, "python": _python, "broker": _broker}
