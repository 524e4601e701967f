"""The blocking broker has the same names, without `await`."""

from broker import Action, Approve, Broker, Interrupt, Principal


def test_the_same_without_await(url: str, namespace: str) -> None:
    with Broker(url, namespace=namespace, by=Principal.local("ada")) as broker:
        ask = Interrupt.approval(Action(tool="refund", arguments={"amount": 40}), call_id="call_1")
        paused = broker.suspend("airline", ask, session="chat-1")

        assert [one.id for one in broker.inbox.list().items] == list(paused.interrupt_ids)
        broker.inbox.answer(paused.interrupt_ids[0], Approve())

        with broker.take(paused.run_id) as run:
            assert run.resolution("call_1").answer == Approve()
            run.finish("paid")
        assert broker.runs.get(run.id).result == "paid"
