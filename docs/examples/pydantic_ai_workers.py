"""An agent of Pydantic AI in workers: one parks, one is killed (kill -9) in the approved call, one ends the run.

pip install 'interrupt-broker[pydantic_ai,embedded]'
python docs/examples/pydantic_ai_workers.py
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

from pydantic_ai import Agent, ModelResponse, RunContext, TextPart, Tool, ToolCallPart
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from broker import Approve, Broker, Principal, Settings, Worker
from broker.adapters.pydantic_ai import effect_key, resumable

SETTINGS = Settings(lease=timedelta(seconds=1), sweep_every=timedelta(milliseconds=200))


def pay(ctx: RunContext[Any], amount: int) -> str:
    """Pays. The first process that gets here is slow, so that it can be killed in the middle."""
    ledger = Path("ledger")
    is_first = not ledger.exists()
    with ledger.open("a") as file:
        file.write(f"{effect_key(ctx)}\n")
    if is_first:
        time.sleep(60)
    return f"paid {amount}"


def model(messages: list[Any], _: AgentInfo) -> ModelResponse:
    """Stands for a model: it asks for the payment, and says in the end that it was made."""
    if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
        return ModelResponse(parts=[TextPart("It is paid.")])
    return ModelResponse(parts=[ToolCallPart("pay", {"amount": 10}, "call-1")])


def work(namespace: str) -> None:
    """A worker."""
    tools = [Tool(pay, requires_approval=True)]
    worker = Worker(namespace=namespace, settings=SETTINGS)
    worker.add("payer", resumable(Agent(FunctionModel(model), name="payer", tools=tools)))
    worker.run()


def show(namespace: str) -> None:
    """What a person sees."""
    command = [sys.executable, str(Path(__file__).resolve()), namespace]
    me = Principal.local("ada")
    with Broker(namespace=namespace, settings=SETTINGS, by=me) as broker:
        first = subprocess.Popen(command)
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
        work(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            show(f"example-{uuid4().hex[:6]}")
