"""One client of the server under test: sends what a request says, at a time that stands still between the steps."""

from typing import Any, NamedTuple, TypeVar

import redis

from broker.core.settings import Settings
from broker.store.commands.values import Command, Read
from broker.store.scripts import Rendering, names
from tests.scripts.world import World

T = TypeVar("T")

BEGINNING = 1_800_000_000_000_000
"""The time at which each example begins, in microseconds."""

PIN = """
local time = redis.call('TIME')
redis.call('SET', KEYS[1], ARGV[1] - time[1] * 1000000 - time[2])
return time
"""


class Answered(NamedTuple):
    """What came of one call: the script's replies as they are, what the client made of them, and what was read then."""

    replies: list[Any]
    results: list[Any]
    seen: Any
    took: int
    """Microseconds from the setting of the clock to the end."""


class Client(World):
    """A connection of its own.

    Time is what the test says it is, but for the microseconds between two commands. Spans end in half seconds and
    tests wait for whole ones, so that these never matter.
    """

    def __init__(self, url: str, namespace: str, rendering: Rendering, settings: Settings) -> None:
        super().__init__(url, namespace, rendering)
        self.settings = settings
        self.time = BEGINNING

    def load(self) -> None:
        """Makes the scripts known to the server, so that each call is one round."""
        with self.client.pipeline(transaction=False) as pipe:
            for name in names():
                for oom in (False, True):
                    pipe.script_load(self.rendering.script(name, oom=oom).text)
            pipe.execute()

    def now(self) -> int:
        return self.time

    def read(self, what: Read[T]) -> T:
        if len(what.commands) == 1 and not what.forgiving:
            return what.decode([self.client.execute_command(*what.commands[0])])
        return super().read(what)

    def send(self, command: Command[Any], look: Read[Any]) -> Answered:
        """Runs a command now, and looks at everything right after it, in one round."""
        script = self.rendering.script(command.script, oom=command.oom)
        keys, args = command.keys(), command.args(self.settings)
        with self.client.pipeline(transaction=False) as pipe:
            pipe.execute_command("EVAL", PIN, 1, self.key("clock"), self.time)
            pipe.execute_command("EVALSHA", script.sha, len(keys), *keys, *args)
            for one in look.commands:
                pipe.execute_command(*one)
            pipe.execute_command("TIME")
            began, replies, *seen, ended = pipe.execute(raise_on_error=False)
        for found in (began, replies, *seen):
            if isinstance(found, redis.RedisError):
                raise found
        took = (int(ended[0]) - int(began[0])) * 1_000_000 + int(ended[1]) - int(began[1])
        return Answered(replies, command.read(replies), look.decode(seen), took)

    def drop_all(self) -> None:
        """Removes every key of the namespace."""
        found = [*self.client.scan_iter(f"{{{self.namespace}:*", count=1000)]
        if found:
            self.client.unlink(*found)
