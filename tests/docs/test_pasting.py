"""Blocks with a bare `await` can be pasted into `python -m asyncio`, one after the other, as the pages say.

Its prompt reads line by line: an empty line ends a block that is indented, and nothing else does.
"""

import ast
import codeop
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, fences, name_of, text_of

BARE = re.compile(r"^(?:[^#\s].*\bawait\b|async (?:for|with)\b)", re.MULTILINE)
PASTED = tuple(
    page for page in PAGES if any(BARE.search(one.body) for one in fences(text_of(page), "python"))
)
HOW = "python -m asyncio"


def faults(block: str) -> Iterator[str]:
    """What the prompt does not take of a block, line by line."""
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    waiting: list[str] = []
    for line in [*block.splitlines(), ""]:
        waiting.append(line)
        try:
            done = compiler("\n".join(waiting), symbol="single")
        except SyntaxError as error:
            yield f"{line!r}: {error.msg}"
            waiting = []
            continue
        if done is not None:
            waiting = []
    if any(waiting):
        yield f"{waiting[0]!r}: never ends"


@pytest.mark.parametrize("page", PASTED, ids=name_of)
def test_the_blocks_of_a_page_can_be_pasted(page: Path) -> None:
    """Off: a statement right behind a loop, or an empty line in a function."""
    found = [(one.line, fault) for one in fences(text_of(page), "python") for fault in faults(one.body)]
    assert found == []
    assert HOW in text_of(page)


def test_what_cannot_be_pasted_is_found() -> None:
    assert list(faults("for n in range(2):\n    print(n)\n\nprint(n)\n")) == []
    assert len(list(faults("for n in range(2):\n    print(n)\nprint(n)\n"))) == 1
    assert len(list(faults("def f():\n    a = 1\n\n    return a\n"))) == 1
