# Generated from broker/_async/listing.py by tests/tools/unasync.py (make sync): do not edit.
"""Open interrupts in the order they were asked, over the lists they stand in."""

from collections.abc import Callable, Sequence

from ..store.commands import reads
from ..store.keys import Partition
from .link import Link


def open_page(
    link: Link, p: Partition, wanted: Callable[[str], bool], after: int | None, limit: int
) -> Sequence[reads.Row]:
    """At most `limit` open interrupts after a place, of the lists whose name is `wanted`.

    The names are read behind the lists: one that appears there for the first time may hold an older interrupt than the
    page, which would then be passed over, so the page is read again with it.
    """
    lists: list[str] = []
    while True:
        page = link.fetch(reads.page_of_open(p, lists, after, limit))
        found = [name for name in page.lists if wanted(name)]
        if set(found) <= set(lists):
            return page.rows
        lists = found
