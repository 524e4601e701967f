"""Open interrupts stand in a list for each queue, kind and tool; pages go over all of them."""

import pytest

from broker import AsyncBroker
from broker._async.listing import open_page
from broker.core.answers import Cancel
from broker.testing import RunningServer

from .world import ANN, World, approval, completion


@pytest.mark.report("RA47")
async def test_a_page_passes_over_nothing_in_a_list_that_is_new(
    world: World, server: RunningServer, namespace: str
) -> None:
    """F48: an older question appears in a list of its own, between the reading of the names and that of the lists."""
    _place, (first,) = world.asked(approval("c1"), name="first")
    later: list[str] = []

    def wanted(_: str) -> bool:
        if not later:
            for name, question in (("older", completion("c2")), ("newer", approval("c3"))):
                later.extend(world.asked(question, name=name)[1])
        return True

    async with AsyncBroker(server.url, namespace=namespace, by=ANN) as broker:
        rows = await open_page(broker._link, world.p, wanted, None, 10)
    assert [row.id for row in rows] == [first, *later]


def test_a_list_is_named_while_it_holds_something(world: World) -> None:
    """Nothing stays behind of a tool that nobody asks about any more."""
    _place, ids = world.asked(approval("c1"), approval("c2"), completion("c3"))
    names = [b"agents:approval_pending:refund", b"agents:custom:render"]
    for one, left in zip(ids, (names, names[1:], []), strict=True):
        assert world.answer(one, Cancel()).code == "accepted"
        assert sorted(world.client.smembers(world.key("lists"))) == left
    assert world.open() == []
