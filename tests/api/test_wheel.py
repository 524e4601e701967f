"""What users install: the whole package and nothing but the package."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("interrupt_broker-*-py3-none-any.whl"))) as opened:
        yield opened


def read(wheel: zipfile.ZipFile, ending: str) -> str:
    return wheel.read(next(name for name in wheel.namelist() if name.endswith(ending))).decode()


@pytest.fixture
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(read(wheel, ".dist-info/METADATA"))


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    there = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (path for path in (ROOT / "broker").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert there == {path.relative_to(ROOT).as_posix() for path in files}


def test_types_scripts_and_licence_are_in_it(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert "broker/py.typed" in names
    assert "broker/store/lua/_prelude.lua" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_command_is_broker(wheel: zipfile.ZipFile) -> None:
    assert "[console_scripts]\nbroker = broker.cli:main" in read(wheel, ".dist-info/entry_points.txt")


def test_pytest_finds_the_fixtures(wheel: zipfile.ZipFile) -> None:
    assert "[pytest11]\nbroker = broker.testing.plugin" in read(wheel, ".dist-info/entry_points.txt")


def test_the_core_needs_three_packages(metadata: Message) -> None:
    needs = metadata.get_all("Requires-Dist") or []
    core = sorted(need for need in needs if "extra ==" not in need)
    assert [need.split("<")[0].split(">")[0] for need in core] == ["msgpack", "pydantic", "redis[hiredis]"]


def test_the_extras(metadata: Message) -> None:
    assert sorted(metadata.get_all("Provides-Extra") or []) == [
        "agui",
        "cli",
        "embedded",
        "gateway",
        "langgraph",
        "mcp",
        "notify",
        "openai-agents",
        "pydantic-ai",
        "schema",
        "slack",
        "telemetry",
        "testing",
    ]


def test_every_supported_interpreter_is_named(metadata: Message) -> None:
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
