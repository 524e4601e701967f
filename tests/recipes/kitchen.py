"""What the tests of recipes share: the programs of a page, as the modules that its reader would have."""

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final, NamedTuple

from tests.docs.pages import ROOT

_PROGRAM: Final = re.compile(
    r"<!-- file: (?P<name>\w+)\.py -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
LONGEST: Final = 60
"""A recipe is complete in fewer lines."""


class Program(NamedTuple):
    """One program of a page: its module's name, its code, and how many lines of the page are before it."""

    name: str
    code: str
    before: int


def programs(page: str) -> Iterator[Program]:
    """The programs of `docs/howto/PAGE.md`, in their order."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    for found in _PROGRAM.finditer(text):
        yield Program(found["name"], found["code"], text.count("\n", 0, found.start("code")))


def recipe(page: str, name: str) -> ModuleType:
    """A program of a page by its name, imported after those before it. What goes wrong names page and line."""
    for one in programs(page):
        module = sys.modules[one.name] = ModuleType(one.name)
        code = compile("\n" * one.before + one.code, f"docs/howto/{page}.md", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - the page is the code under test
        if one.name == name:
            return module
    raise LookupError(f"{page}.md has no program {name}.py")
