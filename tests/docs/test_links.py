"""Links lead somewhere: to a page that is there, and to a heading in it."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, name_of, text_of


def broken(page: Path) -> list[str]:
    found = []
    for target in links(text_of(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        at = (page.parent / path).resolve() if path else page
        if not at.exists() or not at.is_relative_to(ROOT):
            found.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(text_of(at)):
            found.append(f"{target}: there is no such heading")
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    assert broken(page) == []


def test_every_page_is_reached_from_the_readme() -> None:
    seen, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        local = (link.partition("#")[0] for link in links(text_of(page)) if "://" not in link)
        waiting += [(page.parent / path).resolve() for path in local if path]
    assert [name_of(page) for page in PAGES if page not in seen] == []
