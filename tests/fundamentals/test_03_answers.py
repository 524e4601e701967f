"""The first answer counts. Everybody is told what became of theirs, as a small object to match on."""

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Interrupt,
    Principal,
    Reject,
    Replayed,
)

ADA, BEN = Principal.local("ada"), Principal.local("ben")


async def test_the_first_answer_counts(broker: AsyncBroker) -> None:
    refund = Interrupt.approval(Action(tool="refund", arguments={"amount": 40}), call_id="call_1")
    (question,) = (await broker.suspend("airline", refund, session="chat-1")).interrupt_ids

    # An answer may carry the digest of what its giver was shown: then it counts for exactly that.
    card = await broker.inbox.get(question)
    first = await broker.inbox.answer(question, Approve(), by=ADA, seen=card.digest)
    assert isinstance(first, Accepted)

    match await broker.inbox.answer(question, Reject(reason="Too much."), by=BEN):
        case AlreadyDecided(winner=won):
            assert won.by == ADA
        case other:
            raise AssertionError(other)

    # Repeating an answer is safe: it is the same one.
    assert isinstance(await broker.inbox.answer(question, Approve(), by=ADA, seen=card.digest), Replayed)
