"""An agent of the OpenAI Agents SDK in workers: one parks, one is killed (kill -9) in the approved call, one ends it.

pip install 'interrupt-broker[openai_agents,embedded]'
python docs/examples/openai_agents_workers.py
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from broker import Approve, Broker, Principal, Settings, Worker
from broker.adapters.openai_agents import brokered, effect_key, resumable

SETTINGS = Settings(lease=timedelta(seconds=1), sweep_every=timedelta(milliseconds=200))


@brokered
@function_tool
def pay(ctx: ToolContext[Any], amount: int) -> str:
    """Pays. The first process that gets here is slow, so that it can be killed in the middle."""
    ledger = Path("ledger")
    is_first = not ledger.exists()
    with ledger.open("a") as file:
        file.write(f"{effect_key(ctx)}\n")
    if is_first:
        time.sleep(60)
    return f"paid {amount}"


def work(namespace: str, *, is_first: bool) -> None:
    """A worker. A script stands for the model: it asks for the payment, and says in the end that it was made."""
    set_tracing_disabled(True)
    asks = [function_call("pay", {"amount": 10}, call_id="call-1")]
    model = ScriptedModel([asks] if is_first else [[assistant_message("It is paid.")]])
    worker = Worker(namespace=namespace, settings=SETTINGS)
    worker.add("payer", resumable(Agent(name="payer", tools=[pay], model=model)))
    worker.run()


def show(namespace: str) -> None:
    """What a person sees."""
    command = [sys.executable, str(Path(__file__).resolve()), namespace]
    me = Principal.local("ada")
    with Broker(namespace=namespace, settings=SETTINGS, by=me) as broker:
        first = subprocess.Popen([*command, "asks"])
        run = broker.start("payer", "Pay ten.", session="thread-1").run_id
        while not (asked := broker.inbox.list().items):
            time.sleep(0.05)
        print(f"process {first.pid} parked: {asked[0].interrupt.action.tool}")
        first.kill()
        second = subprocess.Popen(command)
        print("answered:", broker.inbox.answer(asked[0].id, Approve()).code)
        while not Path("ledger").exists():
            time.sleep(0.05)
        second.kill()
        print(f"process {second.pid} was killed after it had paid, before that was recorded")
        third = subprocess.Popen(command)
        done = broker.runs.wait(run, 60)
        third.terminate()
        third.wait()
        keys = Path("ledger").read_text().split()
        print(f"process {third.pid} ended the run: {done.state}, {done.result!r}")
        print(f"the payment was asked for {len(keys)} times under {len(set(keys))} idempotency key")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], is_first="asks" in sys.argv)
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            show(f"example-{uuid4().hex[:6]}")
