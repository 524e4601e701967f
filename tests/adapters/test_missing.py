"""An adapter whose package is missing or of another major version says so, naming the extra or the range.

The package that is missing is really not there: in each environment of the suite those of the other adapters are not,
and in the project's own none is.
"""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import iter_modules

import pytest
from packaging.requirements import Requirement

from broker import MissingExtra, UnsupportedVersion, adapters
from broker.adapters import _contract
from tests.worker.fleet import ROOT

from .conftest import ADAPTER, note

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ADAPTERS = sorted(
    found.name for found in iter_modules(adapters.__path__) if found.name in EXTRAS and found.name[0] != "_"
)


def needs(adapter: str) -> dict[str, Requirement]:
    """The packages of an adapter's extra, with their ranges."""
    found = [Requirement(line) for line in EXTRAS[adapter]]
    return {one.name: one for one in found if one.name != "interrupt-broker"}


def is_there(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def installed(path: Path, package: str, found: str) -> Path:
    """A folder in which a package of that version is installed, as far as the metadata go."""
    folder = path / f"{package.replace('-', '_')}-{found}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {found}\n")
    return path


def imported(adapter: str, path: Path | None = None) -> str:
    """What importing the adapter says, in a process of its own."""
    code = f"""
import sys
sys.path[:0] = {[str(path)] if path else []!r}
from broker.errors import BrokerError
try:
    import broker.adapters.{adapter}
except BrokerError as error:
    print(error.code, error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_missing_or_unsupported_package_is_named(
    adapter: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Where a package is missing, the extra; else, for each in turn, the range that another version is out of."""
    if not all(map(is_there, needs(adapter))):
        said = imported(adapter)
        assert said.startswith(MissingExtra.code), said
        assert f"interrupt-broker[{adapter}]" in said
        return
    for package, wanted in needs(adapter).items():
        said = imported(adapter, installed(tmp_path / package, package, "99.0"))
        assert said.startswith(UnsupportedVersion.code), said
        assert "99.0" in said
        assert all(str(bound) in said for bound in wanted.specifier), said
    if adapter == ADAPTER:
        note(request, "unsupported_version", "broker", [os.getpid()])


@pytest.mark.parametrize("found", ["1.1.9", "2.0.0"])
def test_a_version_out_of_range_is_refused(
    found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, "thing", found))
    with pytest.raises(UnsupportedVersion, match=r">=1\.2,<2"):
        _contract.require("extra", "The adapter", _contract.Package("thing", (1, 2), 2))


@pytest.mark.parametrize("found", ["1.2.0", "1.99.3rc1"])
def test_a_version_in_range_is_taken(found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, "thing", found))
    assert _contract.require("extra", "The adapter", _contract.Package("thing", (1, 2), 2)) == {
        "thing": found
    }
