"""What a reader of a doorbell is handed, in either colour."""

from ..core.records import InterruptRecord
from .commands.sweep import Entry


class Delivery:
    """One open interrupt in the hands of one reader. `record.digest` is what an answer's `seen=` should carry."""

    def __init__(self, record: InterruptRecord, entry: Entry) -> None:
        self.record = record
        self.entry = entry

    def __repr__(self) -> str:
        return f"Delivery({self.record!r})"
