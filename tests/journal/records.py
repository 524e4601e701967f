"""What the journal has of the calls of the one run of a namespace, as it is stored."""

from typing import Any

from broker.core.wire import decode
from broker.store.connect import Options, sync_client
from broker.store.keys import Keyspace


class Records:
    """Looks at the records of a namespace that holds one run."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._p = Keyspace(namespace, 1).partition(0)

    def call(self, call_id: str) -> tuple[str, object]:
        """The state of a call, empty where nothing is known, and its handle."""
        client: Any = sync_client(self._url, Options(), 5)
        try:
            (name,) = client.scan_iter(f"{self._p.key('calls')}*")
            run = name.decode().rpartition(":")[2]
            packed = client.hget(name, call_id) or b""
            handle = client.hget(self._p.key("journal", run), f"h {call_id}")
            return packed.decode().partition(" ")[0], decode(handle)["handle"] if handle else None
        finally:
            client.close()
