"""A real server whose fsync can be stopped from outside: a power cut then would take what was not on the disk."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broker.embedded.flags import Setting
from broker.testing import ServerProcess, await_until

SOURCE = Path(__file__).with_name("hold.c")


def build(folder: Path) -> Path:
    """The shim, compiled."""
    library = folder / "hold.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class HoldableServer:
    """A server behind the shim."""

    def __init__(self, library: Path, binary: Path, folder: Path, config: Mapping[str, Setting]) -> None:
        self._flag = folder / "hold"
        program = folder / "server"
        program.write_text(f'#!/bin/sh\nLD_PRELOAD="{library}" HOLD="{self._flag}" exec "{binary}" "$@"\n')
        program.chmod(0o755)
        self.process = ServerProcess(program, config)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No fsync of the server that begins in this block ends before it."""
        self._flag.touch()
        try:
            yield
        finally:
            self._flag.unlink()

    async def held_for(self, milliseconds: int) -> None:
        """Waits until its fsyncs have been held for so long, all together."""
        counted = self._flag.with_name("hold.ms")
        before = counted.stat().st_size if counted.exists() else 0
        await await_until(
            lambda: counted.exists() and counted.stat().st_size >= before + milliseconds,
            30,
            what="the server stands in its fsync",
        )
