"""The pages of the documentation, and what a reader meets in them: fenced blocks, headings, links."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

PAGES: Final = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\((?P<target>[^()\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} +(?P<text>.+)$", re.MULTILINE)


class Fence(NamedTuple):
    """One fenced block: its language, its text, and the line it begins in."""

    language: str
    body: str
    line: int


def name_of(page: Path) -> str:
    """How a page is named in a test run."""
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path | str) -> str:
    """The text of a page, by its path or by its name relative to the checkout."""
    return (ROOT / page).read_text(encoding="utf-8")


def fences(text: str, language: str) -> Iterator[Fence]:
    """Every fenced block of one language."""
    for found in _FENCE.finditer(text):
        if found["language"] == language:
            yield Fence(language, found["body"], text.count("\n", 0, found.start()) + 1)


def prose(text: str) -> str:
    """The text without its fenced blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "``", _FENCE.sub("", text))


def links(text: str) -> list[str]:
    """The targets of the links in the prose of a page."""
    return [found["target"] for found in _LINK.finditer(_FENCE.sub("", text))]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    return {_anchor(found["text"]) for found in _HEADING.finditer(_FENCE.sub("", text))}


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
