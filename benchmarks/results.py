"""Results as a file: what was measured, on what, with what; and what is wrong with it."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from broker.testing import ServerProcess

from . import latency, lifecycle
from .harness import Say, TrialFailed
from .machine import machine, server_settings, versions
from .measures import LONG, SHORT, Found, How
from .micro import codec, scripts

FORMAT: Final = 1
QUICK: Final = ("lifecycle", "latency", "micro", *SHORT)
"""The parts of a short run."""
PARTS: Final = (*QUICK, *LONG)
ROUNDS: Final = {"short": 3, "full": 5}
MOST_ROUNDS: Final[dict[str, int]] = {
    "latency": 3,
    "bytes_open_4k": 1,
    "bytes_open_airline": 1,
    "idle_worker": 1,
    "sync_call": 3,
} | (dict.fromkeys(LONG, 3) | {"growth_1m": 2})
"""Parts that take long for a round, or vary little."""
FOLDER: Final = Path(__file__).with_name("results")


def collect(
    *, parts: tuple[str, ...], rounds: int, tiny: bool, say: Say, runs: Path | None = None
) -> dict[str, Any]:
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
        }
    found |= {name: {} for name in ("counts", "series", "details", "skipped", "failed", "measures")}
    lost = Found()
    for name in parts:
        if name == "micro":
            found["micro"] = _micro(tiny=tiny, say=say)
            continue
        try:
            one = _part(name, How(min(rounds, MOST_ROUNDS.get(name, rounds)), say, tiny, runs))
        except (TrialFailed, TimeoutError) as error:  # the others are worth having
            say(f"{name} failed: {error}")
            found["failed"][name] = str(error)
            continue
        for kind in ("series", "details", "skipped", "measures"):
            found[kind] |= getattr(one, kind)
        lost.missing, lost.doubled = lost.missing + one.missing, lost.doubled + one.doubled
    found["counts"] = _counts(found["series"], lost)
    found["seconds"] = round(time.monotonic() - began, 1)
    found["load"] = {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)}
    return found


def _part(name: str, how: How) -> Found:
    part = {"lifecycle": lifecycle, "latency": latency}.get(name)
    if part is None:
        return (SHORT | LONG)[name](how)
    figures, measures = part.run(part.tiny() if how.tiny else part.SERIES, how.rounds, how.say)
    return Found(measures, {name: figures})


def _counts(series: Mapping[str, Any], others: Found) -> dict[str, int]:
    """Resumes that never happened, or twice, over everything that was measured."""
    every = [one for found in series.values() for one in found["variants"].values()]
    return {
        "missing": sum(one["missing"] for one in every) + others.missing,
        "doubled": sum(one["doubled"] for one in every) + others.doubled,
    }


def _micro(*, tiny: bool, say: Say) -> dict[str, Any]:
    say("micro: codec and digests, then every operation alone")
    return {
        "codec_us": codec.run(0.005 if tiny else 0.25),
        "state_bytes": codec.sizes(),
        "operations": scripts.run(3 if tiny else 60, 1 if tiny else 3),
    }


def faults(results: Mapping[str, Any]) -> list[str]:
    """One line for everything that lost or doubled a resume, or left a run unfinished: it counts for nothing."""
    found = [f"{name} failed: {why}" for name, why in results.get("failed", {}).items()]
    for name, series in results["series"].items():
        for variant, figures in series["variants"].items():
            counts = {word: figures[word] for word in ("missing", "doubled")}
            counts["unfinished"] = sum(figures["facts"].get("unfinished", {"values": []})["values"])
            found += [f"{name}: {variant} has {n:g} {word}" for word, n in counts.items() if n]
    for name, details in results.get("details", {}).items():
        for variant, figures in details.items():
            counts = {
                word: sum(figures[word]["values"]) for word in ("missing", "doubled") if word in figures
            }
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
