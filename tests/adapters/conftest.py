"""What needs the job systems: `BROKER_TEST_ADAPTER=functions pytest tests/adapters` in `.envs/functions`."""

import os
from pathlib import Path

ADAPTER = os.environ.get("BROKER_TEST_ADAPTER", "")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    name = collection_path.name
    return name != f"test_of_{ADAPTER}.py" if name.startswith("test_") else None
