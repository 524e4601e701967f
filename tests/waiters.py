"""Workers that only wait: they say that they have room, and hear what they are woken for."""

from typing import Any

from broker.store.commands.runs import Offer
from broker.store.connect import Options, sync_client
from broker.store.keys import Partition, Pool

MOST = 200


class Waiters:
    """So many workers of one pool, on a connection of their own. Each is woken once, then another one."""

    def __init__(self, url: str, p: Partition, pool: Pool) -> None:
        self._client: Any = sync_client(url, Options(), 5)
        self._idle = p.key("idle", pool)
        self._pubsub = self._client.pubsub()
        self._pubsub.psubscribe(p.key("wake", "*"))
        self.heard: list[bytes] = []
        """What they were told so far, as it came."""
        self.hear()
        self.wait()

    def wait(self) -> None:
        """All of them have room."""
        self._client.sadd(self._idle, *(f"waiter-{n}" for n in range(MOST)))

    def hear(self) -> list[bytes]:
        """What they were told since the last time."""
        found: list[bytes] = []
        self._pubsub.ping()
        while (message := self._pubsub.get_message(timeout=5)) is None or message["type"] != "pong":
            if message is not None and message["type"] == "pmessage":
                found.append(message["data"])
        self.heard += found
        return found

    def woken_for(self) -> list[str]:
        """The runs that they were told of so far."""
        self.hear()
        offers = [Offer.parse(said) for said in self.heard]
        return [one.run for one in offers if one is not None]

    def close(self) -> None:
        """Gives the connections back."""
        self._pubsub.close()
        self._client.close()
