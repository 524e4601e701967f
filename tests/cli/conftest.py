"""The command line under test, in this process and as a process, and records for it to work on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broker import Action, Broker, Interrupt, Principal
from broker.cli import main
from broker.testing import RunningServer


@dataclass(frozen=True)
class Result:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out)

    @property
    def fault(self) -> Any:
        """The one JSON value on standard error."""
        return json.loads(self.err)


Cli = Callable[..., Result]


@pytest.fixture
def environment(
    server: RunningServer, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, str]:
    """Where the commands go: the shared server, this test's namespace, 80 columns, a home of their own."""
    for name in [name for name in os.environ if name.startswith("BROKER_")]:
        monkeypatch.delenv(name)
    given = {
        "BROKER_URL": server.url, "BROKER_NAMESPACE": namespace, "BROKER_HOME": str(tmp_path / "home"),
        "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


@pytest.fixture
def cli(environment: dict[str, str], capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in this process, through the entry point."""
    assert environment

    def run(*words: str) -> Result:
        capfd.readouterr()
        code = main(words)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)

    return run


@pytest.fixture
def process(environment: dict[str, str]) -> Cli:
    """Runs a command line as a process of its own."""

    def run(*words: str, said: str | None = None, **more: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "broker", *words], input=said, capture_output=True, text=True, check=False,
            env=environment | more, timeout=60,
        )  # fmt: skip
        assert "Traceback" not in done.stdout + done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def broker(environment: dict[str, str]) -> Iterator[Broker]:
    """The library beside the command line."""
    asker = Principal.local("asker")
    with Broker(environment["BROKER_URL"], namespace=environment["BROKER_NAMESPACE"], by=asker) as broker:
        yield broker


Ask = Callable[..., str]


@pytest.fixture
def ask(broker: Broker) -> Ask:
    """Starts a run that asks something: `ask(interrupt, session=..., queue=...)` gives the interrupt's id."""
    numbers = iter(range(1000))

    def ask(question: Interrupt | None = None, *, session: str | None = None, queue: str = "agents") -> str:
        name = session or f"session-{next(numbers)}"
        broker.start("desk", {"letter": "hello"}, session=name, queue=queue)
        (run,) = broker.queue(queue).lease(("desk",), holder="worker-1")
        return run.suspend(question or approval()).interrupt_ids[0]

    return ask


def approval(tool: str = "refund_payment", **more: Any) -> Interrupt:
    """A question whether a call may run."""
    return Interrupt.approval(
        Action(tool=tool, arguments={"order": "1142", "amount": 38.5}), "call_1", **more
    )
