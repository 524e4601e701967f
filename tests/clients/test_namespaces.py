"""P13, F45, RA20: what belongs to one namespace is nobody else's, whatever the scopes are called."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker import AlreadyDecided, Approve, Broker, Parked, Reject, Unknown, UnknownId
from broker.testing import RunningServer
from tests.clients.asking import ADA, BEN, refund

NAMES = st.text("ab01_-", min_size=1, max_size=4).map(lambda text: f"n{text}")
IDS = st.text(st.characters(exclude_characters="{}", exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@pytest.mark.report("RA20")
@settings(
    max_examples=25, deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    names=st.lists(NAMES, min_size=2, max_size=2, unique=True),
    session=IDS,
    call=IDS,
    way=st.sampled_from(["id", "call"]),
)
def test_RA20_the_answer_of_one_scope_is_never_anothers(
    server: RunningServer, new_namespace: Callable[[], str], used_namespaces: list[str],
    names: list[str], session: str, call: str, way: str,
) -> None:  # fmt: skip
    """Without the namespace in the key's tag (`keys.partition_tag`) the second broker would find the first one's."""
    base = new_namespace()
    full = [f"{base}{name}" for name in names]
    used_namespaces += full
    with (
        Broker(server.url, namespace=full[0], by=ADA) as one,
        Broker(server.url, namespace=full[1], by=BEN) as two,
    ):
        asked = [each.suspend("support", refund(call=call), session=session, key="k") for each in (one, two)]
        if way == "call":
            told = one.inbox.answer_call(session, call, Approve())
        else:
            told = one.inbox.answer(asked[0].interrupt_ids[0], Approve())
        assert told.ok
        assert [one.active(session), two.active(session)] == [{a.run_id: 1} for a in asked]
        assert [item.id for item in two.inbox.list().items] == list(asked[1].interrupt_ids)
        assert one.inbox.list().items == ()
        later = two.inbox.answer(asked[1].interrupt_ids[0], Reject(reason="no"))
        assert not isinstance(later, AlreadyDecided)
        assert (
            two.inbox.get(asked[1].interrupt_ids[0]).resolution
            != one.inbox.get(asked[0].interrupt_ids[0]).resolution
        )


@pytest.mark.report("RA20")
def test_F45_an_id_of_one_namespace_is_unknown_in_another(
    server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    with (
        Broker(server.url, namespace=new_namespace(), by=ADA) as one,
        Broker(server.url, namespace=new_namespace(), by=BEN) as two,
    ):
        paused = one.suspend("support", refund(), session="s", key="k")
        assert isinstance(two.inbox.answer(paused.interrupt_ids[0], Approve()), Unknown)
        for look in (
            lambda: two.inbox.get(paused.interrupt_ids[0]),
            lambda: two.runs.get(paused.run_id),
            lambda: two.runs.withdraw(paused.run_id),
        ):
            try:
                found = look()
            except UnknownId:
                continue
            raise AssertionError(found)
        assert two.history("s") == ()
        assert two.active("s") == {}
        assert isinstance(two.inbox.answer_call("s", "call_1", Approve()), Parked)
        assert two.fleet().open == 0
        assert one.fleet().open == 1
