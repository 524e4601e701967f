"""What something asks of a server of a test's own: the commands that it ran, and the bytes that came and went."""

from collections import Counter
from dataclasses import dataclass

from broker.testing import ServerProcess

IGNORED = {"info", "ping", "client|setinfo", "hello", "unsubscribe"}
"""What looking on costs, and what a connection does by itself, or when it comes to it."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a server did up to now, or in between."""

    commands: Counter[str]
    received: int
    sent: int

    @classmethod
    def of(cls, server: ServerProcess) -> "Work":
        """All of it so far. Commands of scripts count like any other."""
        commands = Counter[str]()
        for name, value in _info(server, "commandstats").items():
            if (word := name.removeprefix("cmdstat_")) not in IGNORED:
                commands[word] = int(value.partition("calls=")[2].partition(",")[0])
        stats = _info(server, "stats")
        return cls(commands, int(stats["total_net_input_bytes"]), int(stats["total_net_output_bytes"]))

    def since(self, before: "Work") -> "Work":
        """What has been done since then."""
        return Work(self.commands - before.commands, self.received - before.received, self.sent - before.sent)


def _info(server: ServerProcess, section: str) -> dict[str, str]:
    text = server.call("INFO", section)
    assert isinstance(text, bytes)
    pairs = (line.partition(":")[::2] for line in text.decode().split() if ":" in line)
    return dict(pairs)
