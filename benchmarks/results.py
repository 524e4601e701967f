"""Results as a file: what was measured, on what, with what; and what is wrong with it."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from broker.testing import ServerProcess

from . import latency, lifecycle
from .harness import Say
from .machine import machine, server_settings, versions
from .micro import codec, scripts

FORMAT: Final = 1
PARTS: Final = ("lifecycle", "latency", "micro")
FOLDER: Final = Path(__file__).with_name("results")


def collect(*, parts: tuple[str, ...], rounds: int, tiny: bool, say: Say) -> dict[str, Any]:
    """Runs the parts and gives everything that goes into the file. `tiny` runs them without meaning."""
    began, load = time.monotonic(), os.getloadavg()[0]
    with ServerProcess(port=0) as server:
        found: dict[str, Any] = {
            "format": FORMAT,
            "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "tiny": tiny,
            "machine": machine(),
            "versions": versions(server),
            "settings": {"server": server_settings(server), "broker": "default"},
            "series": {},
            "measures": {},
        }
    for name, part in {"lifecycle": lifecycle, "latency": latency}.items():
        if name in parts:
            series = part.tiny() if tiny else part.SERIES
            figures, measures = part.run(series, rounds if name == "lifecycle" else min(rounds, 3), say)
            found["series"][name] = figures
            found["measures"] |= measures
    if "micro" in parts:
        found["micro"] = _micro(tiny=tiny, say=say)
    found["seconds"] = round(time.monotonic() - began, 1)
    found["load"] = {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)}
    return found


def _micro(*, tiny: bool, say: Say) -> dict[str, Any]:
    say("micro: codec and digests, then every operation alone")
    return {
        "codec_us": codec.run(0.005 if tiny else 0.25),
        "state_bytes": codec.sizes(),
        "operations": scripts.run(3 if tiny else 60, 1 if tiny else 3),
    }


def faults(results: Mapping[str, Any]) -> list[str]:
    """One line for every variant that lost or doubled a resume, or left a run unfinished: it counts for nothing."""
    found = []
    for name, series in results["series"].items():
        for variant, figures in series["variants"].items():
            counts = {word: figures[word] for word in ("missing", "doubled")}
            counts["unfinished"] = sum(figures["facts"].get("unfinished", {"values": []})["values"])
            found += [f"{name}: {variant} has {n:g} {word}" for word, n in counts.items() if n]
    return found


def write(results: Mapping[str, Any], path: Path) -> None:
    """Keeps results in a file, stable in its order, fit for a diff."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Results from a file. Raises `ValueError` for a file of another form."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{path.name} does not hold benchmark results of format {FORMAT}")
    return found
