"""The blocking broker, one call after the other: the beginning of most programs."""

import threading
import time

from benchmarks import workload
from benchmarks.job import Job
from broker import Approve, Broker, Principal

from .broker_batch import LOOK_SECONDS, QUEUE, sweeping
from .broker_calls import AGENT, GROUP, NAMESPACE, facts, number_of, prepare, question, session, state

__all__ = ["approve", "facts", "pause", "prepare", "resume"]


def pause(job: Job) -> None:
    """Pauses one run after the other."""
    with Broker(job.url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        job.ready()
        for turn in job.turns():
            for number in turn:
                broker.suspend(
                    AGENT, question(number), session=session(number, job.plan.mark), state=state(number)
                )


def approve(job: Job) -> None:
    """Follows the approvals in a thread: it waits for the next one, also when all is over."""
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            _answer_all(job)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=follow, name="follower", daemon=True)
    thread.start()
    while not job.over and thread.is_alive():
        thread.join(0.02)
    if failed:
        raise failed[0]


def _answer_all(job: Job) -> None:
    """Answers each approval as it comes, bound to what was seen."""
    with Broker(job.url, namespace=NAMESPACE, by=Principal.local(workload.BY)) as broker:
        job.ready()
        for delivery in broker.inbox.follow(GROUP):
            record = delivery.record
            job.answering(number_of(record.session_id))
            outcome = broker.inbox.answer(record.id, Approve(), seen=record.digest)
            if not outcome.ok:
                raise RuntimeError(f"{record.id}: {outcome.code}")


def resume(job: Job) -> None:
    """Leases one run after the other, reads its state and answer, and finishes it."""
    with sweeping(job.url), Broker(job.url, namespace=NAMESPACE) as broker:
        queue = broker.queue(QUEUE)
        job.ready()
        while not job.over:
            runs = queue.lease((AGENT,))
            if not runs:
                time.sleep(LOOK_SECONDS)
            for run in runs:
                number = number_of(run.session_id)
                answer = run.resolution(workload.call_id(number)).answer
                if not isinstance(answer, Approve) or run.state is None:
                    raise TypeError("no approval, or no state")
                job.resumed(number)
                run.finish({"refunded": True})
                job.finished()
