"""Renews leases from a thread of its own, so that a handler that blocks the event loop keeps its run.

It has a connection of its own too: stopping or blocking anything else does not stop the renewals.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, Self

from .core.settings import Settings
from .store.commands.observed import Watch
from .store.commands.runs import Leased, Token, renew
from .store.commands.values import Command
from .store.connect import FAULTS, NoScript, Options, SyncClient, meaning, sync_client, sync_client_like
from .store.keys import Partition
from .store.scripts import Rendering
from .telemetry import Observer

log: logging.Logger = logging.getLogger("broker")

JOIN_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Renewal:
    """One lease being renewed, and whom to tell when the server says it is lost (called in the thread)."""

    leased: Leased
    lost: Callable[[], object]
    renewer: "Renewer"
    is_ending: bool = False

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """While the holder ends the lease itself. A round in between finds it gone, and that is no loss to tell of."""
        self.is_ending = True
        try:
            yield
        finally:
            self.is_ending = False

    def remove(self) -> None:
        """Stops renewing; what was added anew since, or a later lease, goes on. Safe to repeat."""
        self.renewer.remove(self)


class Renewer:
    """Keeps leases alive until they are removed. Start it as a context manager; adding and removing is thread-safe.

    `beat`, where given, is called in the thread with the client after each round: the worker says it is there.
    """

    def __init__(
        self, source: Any, settings: Settings, rendering: Rendering, *, options: Options | None = None,
        beat: Callable[[SyncClient], None] | None = None, observer: Observer | None = None,
    ) -> None:  # fmt: skip
        self._source = source
        self._settings = settings
        self._rendering = rendering
        self._options = options or Options()
        self._beat = beat
        self._observer = observer
        self._held: dict[Token, Renewal] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="broker-renewer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(JOIN_SECONDS)  # a round that hangs with its server ends by itself

    def add(self, leased: Leased, lost: Callable[[], object]) -> Renewal:
        """Renews this lease from now on."""
        renewal = Renewal(leased, lost, self)
        with self._lock:
            self._held[leased.token] = renewal
        return renewal

    def remove(self, renewal: Renewal) -> bool:
        """Whether a lease was still being renewed as it was added here; it no longer is. Safe to repeat."""
        with self._lock:
            token = renewal.leased.token
            return self._held.get(token) is renewal and self._held.pop(token) is renewal

    @property
    def count(self) -> int:
        """How many leases are being renewed."""
        with self._lock:
            return len(self._held)

    def _client(self) -> SyncClient:
        seconds = max(self._settings.lease.total_seconds() / 3, 0.5)
        if isinstance(self._source, str):
            return sync_client(self._source, self._options, seconds)
        return sync_client_like(self._source, self._options, seconds)

    def _loop(self) -> None:
        client = self._client()
        every = self._settings.renew_every.total_seconds()
        pause = every if self._beat is None else 0.0
        try:
            while not self._stop.wait(pause):
                began = monotonic()
                try:
                    self._round(client)
                    pause = max(every - (monotonic() - began), 0.0)
                except FAULTS as error:
                    # The lease may outlive a short outage: try again well before it runs out.
                    log.warning("lease renewal: %s, trying again", type(error).__name__)
                    pause = min(every / 4, 0.5)
                except Exception as error:  # noqa: BLE001 - what goes wrong with one lease must not lose the others
                    log.error("lease renewal: %s; going on", type(error).__name__)  # noqa: TRY400 - no traceback
                    pause = every
        finally:
            with contextlib.suppress(*FAULTS):
                client.close()

    def _round(self, client: SyncClient) -> None:
        with self._lock:
            held = list(self._held.values())
        by_partition: dict[Partition, list[Renewal]] = {}
        for one in held:
            by_partition.setdefault(one.leased.partition, []).append(one)
        for partition, group in by_partition.items():
            for start in range(0, len(group), 64):
                some = group[start : start + 64]
                ends = self._run(
                    client, renew(partition, [one.leased.token for one in some], self._settings.lease)
                )
                for one, until in zip(some, ends, strict=True):
                    if until is None and not one.is_ending and self.remove(one):
                        one.lost()
        if self._beat is not None:
            self._beat(client)

    def _run(self, client: SyncClient, command: Command[Any]) -> list[Any]:
        return run_command(client, command, self._settings, self._rendering, self._observer)


def run_command(
    client: SyncClient,
    command: Command[Any],
    settings: Settings,
    rendering: Rendering,
    observer: Observer | None = None,
) -> list[Any]:
    """Sends one command over a blocking client, once; an unknown script is sent whole."""
    script = rendering.script(command.script, oom=command.oom)
    keys, args = command.keys(), command.args(settings)
    with Watch(observer, command) as watch:
        try:
            reply = client.execute_command("EVALSHA", script.sha, len(keys), *keys, *args)
        except FAULTS as error:
            if not isinstance(meaning(error), NoScript):
                raise
            reply = client.execute_command("EVAL", script.text, len(keys), *keys, *args)
        return watch.saw(command.read(reply))
