import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


def lint_imports(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "broker", tmp_path / "broker", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("core/wire.py", "import socket", "The core is pure"),
        ("core/wire.py", "import redis", "The core is pure"),
        ("store/keys.py", "import redis.exceptions", "Only store.connect knows"),
        ("store/keys.py", "import broker._async", "Floors"),
        ("core/kinds.py", "import broker", "Floors"),
        ("errors.py", "import broker.core.kinds", "Floors"),
        ("core/wire.py", "import broker.core.kinds", "No circles"),
    ],
)
def test_a_breach_is_noticed(copy: Path, module: str, line: str, contract: str) -> None:
    path = copy / "broker" / module
    path.write_text(path.read_text() + f"\n{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert any(text.startswith(contract) and text.endswith("BROKEN") for text in done.stdout.splitlines())


def test_a_module_without_a_floor_is_noticed(copy: Path) -> None:
    (copy / "broker/extra.py").write_text("")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert "extra" in done.stdout
