"""Sends commands one call at a time, over a connection of the client's pool for each thread that is calling."""

from collections.abc import Sequence
from typing import Any

from ..store.commands.values import Arg, Call, Came
from ..store.connect import Options, Refusal
from ._runtime import Client


def at_once(options: Options) -> int:
    """How many calls may be under way: as many as there are connections for them."""
    return options.max_connections


class Wire:
    """Sends commands, each call on a connection of its own."""

    def __init__(self, client: Client, seconds: float) -> None:  # noqa: ARG002 - the client keeps the time
        self.client: Client = client

    def run(self, call: Call, *, whole: bool = False) -> Came:
        """What the server makes of a script call. Raises what it says against it, or that the connection was lost."""
        words = call.words(whole=whole)
        if not call.after:
            return Came(self.client.execute_command(*words))
        reply, *after = self.read((words, *call.after))
        if isinstance(reply, Exception):
            raise reply
        return Came(reply, after)

    def read(self, commands: Sequence[tuple[Arg, ...]]) -> list[Any]:
        """The reply to each command, an error of the server in its place. Raises when the connection was lost."""
        if not commands:
            return []
        if len(commands) == 1:
            try:
                return [self.client.execute_command(*commands[0])]
            except Refusal as error:
                return [error]
        pipe = self.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return list(pipe.execute(raise_on_error=False))

    def close(self) -> None:
        """Closes the connections. Safe to repeat."""
        self.client.close()
