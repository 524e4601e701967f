"""The log of a gateway process: a line for each request and each fault, as text or as one JSON object.

A fault is told by its sort and the places in the code it went through. Its message is left out: it may hold what was
worked on.
"""

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

LOGGERS: Final = ("broker", "uvicorn")


class Line(logging.Formatter):
    """One record as one line."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said, fault = record.getMessage(), _fault(record)
        if self._as_json:
            facts: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
            return json.dumps(facts | {"message": said} | fault | getattr(record, "facts", {}))
        told = " ".join(f"{name}={value}" for name, value in fault.items())
        # A line break in what is told would begin a line of somebody's own.
        return f"{at} {record.levelname} {record.name}: {said} {told}".rstrip().replace("\n", "\\n")


def _fault(record: logging.LogRecord) -> dict[str, str]:
    if not record.exc_info or record.exc_info[1] is None:
        return {}
    kind, _, trace = record.exc_info
    places = (f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(trace))
    return {"fault": kind.__name__, "where": " ".join(places)}


@contextmanager
def written(*, as_json: bool) -> Iterator[None]:
    """While the block lasts, the log goes to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Line(as_json=as_json))
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for name, level in before.items():
            log = logging.getLogger(name)
            log.removeHandler(handler)
            log.setLevel(level)
