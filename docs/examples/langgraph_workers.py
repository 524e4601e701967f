"""A LangGraph agent in two workers: one parks, one is killed (kill -9) in the approved call, the other ends the run.

pip install 'interrupt-broker[langgraph,embedded]' langgraph-checkpoint-sqlite
python docs/examples/langgraph_workers.py
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from broker import Broker, Principal, Respond, Settings, Worker
from broker.adapters.langgraph import effect_key, resumable

SETTINGS = Settings(lease=timedelta(seconds=1), sweep_every=timedelta(milliseconds=200))


class State(TypedDict):
    """What the graph works on."""

    amount: int
    said: str


def pay(state: State) -> dict[str, str]:
    """Asks, then pays. The first process that gets here is slow, so that it can be killed in the middle."""
    if not interrupt(f"pay {state['amount']}?"):
        return {"said": "not paid"}
    ledger = Path("ledger")
    is_first = not ledger.exists()
    with ledger.open("a") as file:
        file.write(f"{effect_key()}\n")
    if is_first:
        time.sleep(60)
    return {"said": f"paid {state['amount']}"}


def work(namespace: str) -> None:
    """A worker."""
    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", END)
    saver = SqliteSaver(sqlite3.connect("threads.sqlite", check_same_thread=False, timeout=30))
    graph = resumable(builder.compile(checkpointer=saver), name="payer")
    worker = Worker(namespace=namespace, settings=SETTINGS)
    worker.add("payer", graph.resume)
    worker.run()


def show(namespace: str) -> None:
    """What a person sees."""
    command = [sys.executable, str(Path(__file__).resolve()), namespace]
    me = Principal.local("ada")
    with Broker(namespace=namespace, settings=SETTINGS, by=me) as broker:
        first = subprocess.Popen(command)
        run = broker.start("payer", {"amount": 10}, session="thread-1").run_id
        while not (asked := broker.inbox.list().items):
            time.sleep(0.05)
        print(f"process {first.pid} parked: {asked[0].interrupt.payload}")
        print("answered:", broker.inbox.answer(asked[0].id, Respond(payload=True)).code)
        while not Path("ledger").exists():
            time.sleep(0.05)
        first.kill()
        print(f"process {first.pid} was killed after it had paid, before that was recorded")
        second = subprocess.Popen(command)
        done = broker.runs.wait(run, 60)
        second.terminate()
        second.wait()
        keys = Path("ledger").read_text().split()
        print(f"process {second.pid} ended the run: {done.state}, {done.result['said']!r}")
        print(f"the payment was asked for {len(keys)} times under {len(set(keys))} idempotency key")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            show(f"example-{uuid4().hex[:6]}")
