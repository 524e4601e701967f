"""The example of LangGraph's own documentation is on our page, nearly as it is in the installed package."""

import difflib
import inspect
import re

from langgraph.types import interrupt

from tests.docs.pages import fences, text_of

MOST = 8
PAGE = "docs/howto/langgraph.md"
ENDS = "command = Command("
"""Where the example goes on with its own answer: with the broker that is the inbox's."""


def lines(code: str) -> list[str]:
    """The lines of a program that are not blank and not the example's shown output."""
    return [line for line in code.splitlines() if line.strip() and not line.startswith("# >")]


def the_example() -> list[str]:
    """The program in the documentation of `interrupt`, up to its answer."""
    found = re.search(r"```python\n(.*?)```", inspect.getdoc(interrupt) or "", re.DOTALL)
    assert found is not None
    return lines(inspect.cleandoc(found[1]).partition(ENDS)[0])


def on_the_page() -> list[str]:
    """The page's two blocks that are that program: the graph, and its call."""
    graph, _, call, *_ = fences(text_of(PAGE), "python")
    return lines(graph.body + call.body)


def changed() -> list[str]:
    """The lines of the page that the example has not, or has otherwise."""
    steps = difflib.SequenceMatcher(None, the_example(), on_the_page(), autojunk=False).get_opcodes()
    removed = [step for step in steps if step[0] == "delete"]
    assert removed == [], "the page leaves out lines of the example"
    return [line for kind, _, __, since, to in steps if kind != "equal" for line in on_the_page()[since:to]]


def test_the_example_is_kept_with_few_changed_lines() -> None:
    assert len(the_example()) > 25
    assert 0 < len(changed()) <= MOST


def test_each_changed_line_says_so() -> None:
    marked = [line for line in on_the_page() if line.endswith("# broker")]
    assert changed() == marked
