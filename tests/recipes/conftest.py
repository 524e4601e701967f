"""A recipe runs where its framework is: `BROKER_TEST_RECIPE=strands pytest tests/recipes` in `.envs/recipe-strands`.

`test_of_NAME.py` is what is collected there; nothing is in the project's own environment.
"""

import os
from pathlib import Path

RECIPE = os.environ.get("BROKER_TEST_RECIPE", "")
"""The recipe under test; none in the project's own environment."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    name = collection_path.name
    if name.startswith("test_of_"):
        return name != f"test_of_{RECIPE}.py"
    return None
