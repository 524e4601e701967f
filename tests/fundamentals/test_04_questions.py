"""Questions to people may have a schema for their answer, and arguments may be edited where that is offered."""

from broker import Action, AnswerKind, AsyncBroker, Edit, Interrupt, Invalid, Respond

COLOURS = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}


async def test_an_answer_has_to_fit_the_schema(broker: AsyncBroker) -> None:
    ask = Interrupt.question({"text": "Which colour?"}, schema=COLOURS)
    (question,) = (await broker.suspend("painter", ask, session="chat-1")).interrupt_ids

    wrong = await broker.inbox.answer(question, Respond(payload={"colour": "green"}))
    assert isinstance(wrong, Invalid)
    assert wrong.field == "payload.colour"

    assert (await broker.inbox.answer(question, Respond(payload={"colour": "blue"}))).ok


async def test_arguments_may_be_edited(broker: AsyncBroker) -> None:
    refund = Action(tool="refund", arguments={"amount": 400})
    ask = Interrupt.approval(refund, call_id="call_1", offers=(AnswerKind.APPROVE, AnswerKind.EDIT))
    paused = await broker.suspend("airline", ask, session="chat-1")

    await broker.inbox.answer(paused.interrupt_ids[0], Edit(arguments={"amount": 40}))

    async with broker.take(paused.run_id) as run:
        assert run.resolution("call_1").answer == Edit(arguments={"amount": 40})
