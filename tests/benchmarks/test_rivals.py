"""The contest with rivals: one path for everybody, counts of what went wrong, reasons for who cannot run."""

import ast
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import TrialFailed
from benchmarks.job import ROLES, Plan
from benchmarks.rivals import __main__ as command
from benchmarks.rivals import catalogue, contest, servers
from benchmarks.rivals.catalogue import FLOOR, OURS, RIVALS, Rival
from benchmarks.rivals.environments import CannotRun, interpreter, versions

ROOT = Path(__file__).resolve().parents[2]
FLOOR_ITSELF = OURS[0]
CARELESS = replace(FLOOR_ITSELF, name="careless", module="tests.benchmarks.careless")

Found = dict[str, Any]


def rows(text: str) -> dict[str, list[str]]:
    """The table, by the first cell of a row."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in cells}


def play(monkeypatch: pytest.MonkeyPatch, out: Path, *rivals: Rival) -> tuple[int, Found]:
    """The command with these instead of everybody: its exit code and its file."""
    monkeypatch.setattr(catalogue, "OURS", rivals)
    monkeypatch.setattr(catalogue, "RIVALS", ())
    code = command.main(["--tiny", "--rounds", "1", "--out", str(out / "results" / "it.json")])
    return code, json.loads((out / "results" / "it.json").read_text(encoding="utf-8"))


def test_everybody_in_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever runs has figures and counts beside the floor, whoever cannot says why, and the others go on.

    Off: with the counts of no trial summed, with an error of one ending the run of all, with the reason left out.
    """
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(servers, "ALSO", ())
    again = replace(FLOOR_ITSELF, name="floor-again", by_hand="all of it")
    absent = replace(FLOOR_ITSELF, name="absent", server="nats")
    broken = replace(FLOOR_ITSELF, name="broken", module="tests.benchmarks.no_such_way")
    code, found = play(monkeypatch, tmp_path, absent, FLOOR_ITSELF, again, CARELESS, broken)
    text = capsys.readouterr().out
    table = rows(text)

    assert code == 0
    assert {len(row) for row in table.values()} == {len(table["variant"])}
    for name in (FLOOR, "floor-again"):
        figures = found["variants"][name]
        assert all(figures[figure]["median"] > 0 for figure in (*contest.FAST, *contest.AT_RATE))
        assert (table[name][0], table[name][-3:-1]) == ("memory (fsync 1 s)", ["0", "0"])
    assert table["floor-again"][-1] == "all of it"
    assert f"{FLOOR}: on valkey" in text

    assert table["careless"][-3:-1] == ["1", "2"]  # the second trial has six lifecycles: no number 7

    assert table["absent"][1] == table["broken"][1] == "cannot run"
    assert "absent: cannot run: no nats-server on this machine (on Debian: the package nats-server)" in text
    assert "broken: cannot run: ModuleNotFoundError: No module named 'tests.benchmarks.no_such_way'" in text


def test_a_floor_that_is_wrong_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Off: with `main` giving 0 whatever `faults` says."""
    code, found = play(monkeypatch, tmp_path, replace(CARELESS, name=FLOOR))
    assert code == 1
    assert contest.faults(found) == [f"{FLOOR} has 1 missing", f"{FLOOR} has 2 doubled"]
    assert contest.faults(found)[0] in capsys.readouterr().err


def test_without_the_floor_there_is_no_table(tmp_path: Path) -> None:
    rival = replace(FLOOR_ITSELF, module="tests.benchmarks.no_such_way")
    with pytest.raises(TrialFailed, match="no_such_way"):
        contest.run([rival], 1, tiny=True, say=lambda _: None, home=tmp_path)


def wheel(folder: Path) -> str:
    """A package that is nothing but its name, as pip is asked for it."""
    path, about = folder / "nothing-1.5-py3-none-any.whl", "nothing-1.5.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1.5\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return f"nothing @ {path.as_uri()}"


def test_an_environment_is_made_once_and_again_when_it_changes(tmp_path: Path) -> None:
    """Off: with what it holds never compared, or written down before pip has done its work."""
    rival = replace(FLOOR_ITSELF, name="it", packages=(wheel(tmp_path),))
    python = interpreter(rival, tmp_path)
    assert versions(rival, python) == {"nothing": "1.5"}
    mark = python.with_name("mark")
    mark.touch()
    assert interpreter(rival, tmp_path) == python
    assert mark.exists()
    with pytest.raises(CannotRun, match="missing"):
        interpreter(replace(rival, packages=(wheel(tmp_path), f"{tmp_path}/missing.whl")), tmp_path)
    assert not python.exists()


def test_ours_run_with_this_interpreter() -> None:
    assert {interpreter(one) for one in OURS} == {Path(sys.executable)}


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_every_rival_has_its_way_its_server_and_its_packages(rival: Rival) -> None:
    path = ROOT.joinpath(*rival.module.split(".")).with_suffix(".py")
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    assert {"prepare", *ROLES} <= names
    assert rival.server in servers.KINDS
    assert rival.packages
    assert rival.durable in {catalogue.EVERY_SECOND, catalogue.EVERY_TWO_MINUTES, catalogue.FSYNCED}
    assert all("<" in package for package in rival.packages if package != "hiredis")


def test_a_tiny_plan_is_one_of_a_few() -> None:
    fast, at_rate = RIVALS[0].plans(tiny=True)
    assert (fast.count, fast.rate, at_rate.rate) == (12, 0.0, catalogue.RATE)
    assert RIVALS[0].plans(tiny=False)[0] == RIVALS[0].plan != Plan(12)
