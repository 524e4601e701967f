"""The connections of the blocking client: kept between calls, given up when they are dead, and nobody else's."""

import os
import threading
from collections.abc import Iterator

import pytest

from broker import Approve, Broker, InvalidInput, Unavailable
from broker.testing import ServerProcess, wait_until

from .world import ADA, approval


@pytest.fixture
def broker(own_server: ServerProcess) -> Iterator[Broker]:
    with Broker(own_server.url, by=ADA) as made:
        yield made


def clients_of(server: ServerProcess) -> bytes:
    """The connections that the server has, as it tells."""
    clients = server.call("CLIENT", "LIST")
    assert isinstance(clients, bytes)
    return clients


def connections(server: ServerProcess) -> int:
    """How many of them are a broker's."""
    return clients_of(server).count(b"name=broker")


def test_a_connection_is_kept_for_the_next_call(own_server: ServerProcess, broker: Broker) -> None:
    """Off: `Wire._told` does not give its connection back."""
    for n in range(20):
        broker.suspend("a", approval(n), session="s", key=f"k{n}")
    assert connections(own_server) == 1


def test_a_connection_that_the_server_ended_is_not_used_again(
    own_server: ServerProcess, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R17: the next call is sent once, over a new one. Off: `Socket.is_quiet`, when the dead one is tried first."""
    broker.suspend("a", approval(0), session="s", key="k0")
    kept = list(broker._link.wire._free)
    own_server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert len(kept) == 1
    assert not kept[0].is_quiet()
    monkeypatch.setattr("broker._sync.link.sleep", pytest.fail)  # a repeat is one too many
    assert broker.suspend("a", approval(1), session="s", key="k1").code == "accepted"


def test_closing_ends_a_call_that_waits(own_server: ServerProcess, broker: Broker) -> None:
    """Off: `Wire.close` closes the connections that are free, and no others."""
    faults: list[BaseException] = []

    def wait() -> None:
        try:
            broker._link.wire.read([("BLPOP", "nothing", 0)])
        except BaseException as fault:  # noqa: BLE001 - looked at below
            faults.append(fault)

    wire = broker._link.wire
    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: b"cmd=blpop" in clients_of(own_server))
    broker.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(faults[0], OSError)
    with pytest.raises(Unavailable, match="closed meanwhile"):
        wire.read([("PING",)])


def test_a_forked_process_has_connections_of_its_own(own_server: ServerProcess, broker: Broker) -> None:
    """Off: `Wire._take` uses what its parent had."""
    broker.suspend("a", approval(0), session="s", key="k0")
    child = os.fork()
    if child == 0:
        try:
            code = broker.suspend("a", approval(1), session="s", key="k1").code
            os._exit(0 if (code, connections(own_server)) == ("accepted", 2) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert broker.suspend("a", approval(1), session="s", key="k1").code == "replayed"


def test_what_cannot_be_written_is_named(broker: Broker) -> None:
    """P12: nothing is sent. Off: the fault of the encoder is handed on."""
    with pytest.raises(InvalidInput, match="value cannot be written"):
        broker._link.wire.read([("ECHO", "\ud800")])


def test_who_answers_what_was_listed_reads_nothing_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F11: the list said it all. Off: `Inbox._listed` keeps nothing."""
    for n in range(3):
        broker.suspend("a", approval(n), session="s", key=f"k{n}")
    waiting = broker.inbox.list().items
    read: list[object] = []
    wire = broker._link.wire
    monkeypatch.setattr(wire, "read", read.append)
    outcomes = [broker.inbox.answer(one.id, Approve(), seen=one.digest) for one in waiting]
    assert [one.code for one in outcomes] == ["accepted"] * 3
    assert read == []
