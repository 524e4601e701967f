"""The inbox: what waits for an answer can be listed, and followed as it comes."""

from contextlib import aclosing

from broker import Action, Approve, AsyncBroker, Interrupt


def refund(amount: int) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"amount": amount}), call_id=f"call_{amount}")


async def test_what_waits_is_listed(broker: AsyncBroker) -> None:
    for n, amount in enumerate((40, 400)):
        await broker.suspend("airline", refund(amount), session=f"chat-{n}", queue="refunds")

    page = await broker.inbox.list(queue="refunds", tool="refund")
    assert [one.interrupt.call_id for one in page.items] == ["call_40", "call_400"]


async def test_an_approver_follows_what_comes(broker: AsyncBroker) -> None:
    for n, amount in enumerate((40, 400)):
        await broker.suspend("airline", refund(amount), session=f"chat-{n}")

    async with aclosing(broker.inbox.follow("approvals")) as deliveries:
        async for delivery in deliveries:
            question = delivery.record
            await broker.inbox.answer(question.id, Approve(), seen=question.digest)
            if question.interrupt.call_id == "call_400":
                break

    assert (await broker.inbox.list()).items == ()
