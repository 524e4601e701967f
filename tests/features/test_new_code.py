"""F53: what waits survives the deployment of new code."""

from collections.abc import Callable
from typing import Any

from broker import Approve, AsyncBroker, BlockingRun, Run, RunState, Worker, gated
from tests.worker.fleet import ended, run_when

Serve = Callable[..., Worker]


async def test_F53_an_old_wait_goes_on_in_new_code(broker: AsyncBroker, serve: Serve) -> None:
    """The new release is another build, has its tool rewritten, and does more behind the old call.

    Off: runs that are for one build though nobody pinned them (`AsyncBroker._place`), or calls whose digest covers more
    than tool and arguments (`Action.digest`).
    """
    did: list[str] = []

    def old() -> Callable[..., Any]:
        @gated
        async def pay(amount: int) -> str:
            raise AssertionError(amount)  # nobody has agreed while this release was there

        async def handler(run: Run[Any]) -> Any:
            return await run.call(pay, {"amount": 40}, call_id="c1")

        return handler

    def new() -> Callable[..., Any]:
        @gated(reviewers="cashiers")
        def pay(amount: int, currency: str = "EUR") -> str:
            did.append(f"pay {amount} {currency}")
            return f"paid {amount}"

        def note(text: str) -> str:
            did.append(f"note {text}")
            return text

        def handler(run: BlockingRun[Any]) -> Any:
            said = run.call(pay, {"amount": 40}, call_id="c1")
            return [said, run.step(note, "new")]

        return handler

    first = serve(a=old(), options={"build": "v1"})
    started = await broker.start("a", session="s")
    pinned = await broker.start("a", session="s", build="v1")
    waiting = [await run_when(broker, one.run_id, RunState.WAITING) for one in (started, pinned)]
    first.stop()
    for run in waiting:
        await broker.inbox.answer(run.interrupt_ids[0], Approve())
    serve(a=new(), options={"build": "v2"})
    run = await ended(broker, started.run_id)
    assert (run.state, run.result, run.errors) == (RunState.FINISHED, ["paid 40", "new"], ())
    assert did == ["pay 40 EUR", "note new"]
    assert (await broker.runs.get(pinned.run_id)).state is RunState.READY  # for a worker of its own release
