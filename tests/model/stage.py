"""Where the machine plays: two clients, one partition, the model beside it, and what everybody has been told."""

from typing import Any, Final

import hypothesis

from broker.core.models import Interrupt
from broker.core.settings import Settings
from broker.store.commands.runs import Leased, Offer
from broker.store.commands.values import Command, Recheck, StaleAddress, text
from broker.store.scripts import Rendering
from tests.scripts.world import POOL, SESSION
from tests.waiters import Waiters

from .answering import AnswerCall
from .client import BEGINNING, Answered, Client
from .pausing import Suspend
from .promises import Kept
from .request import Reply, Request
from .seen import Names, View, differences, expected, look
from .state import Model
from .sweeping import Readers
from .table import Table

NAMES: Final = ("a", "b")
TOO_LONG: Final = 300_000
GROUPS: Final = ("approvals", "completions")


class Disagreement(AssertionError):
    """The server did something that the protocol does not say."""


class Stage:
    """One example's namespace. `play` sends a request and holds whatever comes of it against the model."""

    def __init__(
        self, url: str, namespace: str, rendering: Rendering, settings: Settings, table: Table
    ) -> None:
        self.namespace = namespace
        self.clients = [Client(url, namespace, rendering, settings) for _ in range(2)]
        self.p = self.clients[0].p
        self.model = Model(table, settings)
        self.places = {name: self.clients[0].place(name) for name in NAMES}
        self.time = BEGINNING
        self.model.now = self.time
        self.readers = Readers()
        self.sent: list[tuple[Request, Command[Any]]] = []
        self.leases: list[Leased] = []
        self.questions: dict[str, Interrupt] = {}
        self.kept = Kept()
        self.script: list[str] = []
        self.failed = False
        self._last = dict.fromkeys(("interrupts", "dispositions"), "0-0")
        self._waiters = Waiters(url, self.p, POOL)
        self._number = 0
        for group in GROUPS:
            self.command("XGROUP", "CREATE", self.p.key("interrupts"), group, "0", "MKSTREAM")
        self.view = View(expected(self.model, self._names()))

    def __repr__(self) -> str:
        return f"Stage({self.namespace!r})"

    def close(self) -> None:
        """Leaves nothing behind."""
        self.clients[0].drop_all()
        self._waiters.close()
        for client in self.clients:
            client.close()

    def command(self, *words: Any) -> Any:
        """Something that neither client does: a reader of doorbells, or the loss of some."""
        return self.clients[0].client.execute_command(*words)

    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.script.append(f"{seconds} seconds pass")
        self._tick(seconds * 1_000_000)

    def _tick(self, span: int) -> None:
        self.time += span
        for client in self.clients:
            client.time = self.time
        self.model.now = self.time

    def new(self, word: str) -> str:
        """A name that nobody has used."""
        self._number += 1
        return f"{word}{self._number}"

    def read(self, group: str) -> None:
        """A reader of a group is handed the next entry of the interrupts doorbell."""
        stream = self.p.key("interrupts")
        found = self.command("XREADGROUP", "GROUP", group, "r", "COUNT", 1, "STREAMS", stream, ">")
        for rows in found.values() if isinstance(found, dict) else (row[1] for row in found or ()):
            for row in rows:
                self.script.append(f"{group} are handed {text(row[0])}")
                self.readers.given(group, text(row[0]))

    def forget(self, group: str, entry: str) -> None:
        """A reader loses an entry that it was handed."""
        self.script.append(f"{group} lose {entry}")
        self.command("XACK", self.p.key("interrupts"), group, entry)
        self.readers.gone(group, entry)

    def trim(self) -> None:
        """The server forgets all that was rung on the interrupts doorbell."""
        self.script.append("the doorbell is trimmed")
        self.command("XTRIM", self.p.key("interrupts"), "MAXLEN", 0)
        self.readers.entries.clear()

    @property
    def collectable(self) -> bool:
        """Whether something has been settled for long enough."""
        return any(at <= self.time for at in self.model.records.retention.values())

    def _names(self, request: Request | None = None) -> Names:
        """What there may be to see: what there was, and what a request is about."""
        runs = [place.run for place in self.places.values()]
        r = self.model.records
        asked = [q.id for q in request.pause.questions] if isinstance(request, Suspend) else []
        interrupts = [*dict.fromkeys((*r.interrupts, *asked))]
        slots = [request.slot] if isinstance(request, AnswerCall) else []
        return Names(
            SESSION, POOL, runs, interrupts, [*dict.fromkeys((*interrupts, *slots, *sorted(r.verdicts)))]
        )

    # Requests --------------------------------------------------------------------------------------------------

    def play(self, request: Request, who: int, how: str) -> None:
        """Sends a request: its client is told, or its reply is lost and it asks again, or it is late."""
        command = request.command(self.clients[who])
        if request.KEEPS:
            self.sent.append((request, command))
        if how == "late" and request.KEEPS:
            self.script.append(f"late: {request}")
            return
        self.deliver(request, command, who)
        if how == "reply lost":
            self.deliver(request, command, who)

    def deliver(self, request: Request, command: Command[Any], who: int) -> None:
        """One arrival of a request, and whatever comes of it."""
        for _ in range(4):
            self.script.append(f"{'AB'[who]}: {request}")
            answered = self._send(request, command, who)
            if answered.took > TOO_LONG:
                self.failed = True
                hypothesis.reject()  # the machine is too busy for a clock that stands still
            result = answered.results[0]
            if not isinstance(result, StaleAddress | Recheck):
                self._hold(request, answered)
                return
            # Nobody is told of this one. It must have left everything as it was; its client looks, and asks again.
            self._compare(self.view.facts, answered.seen, set())
            request = request.looked(self.clients[who]) if isinstance(result, Recheck) else request
            command = request.command(self.clients[who])
        self.fail("an address that was read just now is always out of date")

    def _send(self, request: Request, command: Command[Any], who: int) -> Answered:
        client = self.clients[who]
        self._tick(1000)  # time never goes back, not even within a second
        answered = client.send(command, look(self.p, self._names(request), self._last))
        offers = enumerate(map(Offer.parse, self._waiters.hear()))
        answered.seen.rung["ready"] = {str(n): {"run": one.run if one else ""} for n, one in offers}
        self._waiters.wait()
        return answered

    def _hold(self, request: Request, answered: Answered) -> None:
        before, seen = self.view, answered.seen
        told = request.told(Reply(answered.replies, answered.results[0], before))
        self.model.records.bells = set()
        wanted = request.expected(self.model)
        self.script.append(f"   -> {told}")
        if told != wanted:
            self.fail(f"{request} was told {told}, should be told {wanted}")
        self._compare(expected(self.model, self._names()), seen, self.model.records.bells)
        self.leases += [one for one in answered.results if isinstance(one, Leased)]
        for broken in self.kept.broken(request, told, before, seen):
            self.fail(broken)

    def _compare(self, wanted: dict[str, Any], seen: View, bells: set[str]) -> None:
        found = differences(seen.facts, wanted)
        rung = {name for name, entries in seen.rung.items() if entries}
        if rung != bells:
            found.append(f"rung: {sorted(rung)}, should be {sorted(bells)}")
        if found:
            self.fail("\n".join(found))
        self.readers.rung(seen.rung["interrupts"])
        for name in self._last:
            self._last[name] = [self._last[name], *seen.rung[name]][-1]
        self.view = seen

    def fail(self, why: str) -> None:
        """Ends the example."""
        self.failed = True
        raise Disagreement("\n".join((why, "after", *self.script)))
