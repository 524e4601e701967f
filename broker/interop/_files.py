"""Files that are there whole or not at all, whoever reads them and whatever dies."""

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that its readers see the old one or this one, also after a power cut."""
    with _beside(path) as (file, name):
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(path)
    flush(path.parent)


@contextlib.contextmanager
def _beside(path: Path) -> Generator[tuple[int, str]]:
    file, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        yield file, name
    finally:
        Path(name).unlink(missing_ok=True)


def flush(folder: Path) -> None:
    """The folder's own entries onto the disk, where folders can be opened for that."""
    with contextlib.suppress(PermissionError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
