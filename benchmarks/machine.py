"""The machine a result is of, the versions and settings behind it, and the processor time of a process."""

import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from broker.testing import ServerProcess

PACKAGES: Final = ("interrupt-broker", "redis", "hiredis", "msgpack", "pydantic")
SERVER_SETTINGS: Final = ("appendonly", "appendfsync", "save", "maxmemory-policy")


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, user and system, all threads: the kernel's clock of that process.

    It is the sum behind /proc/PID/stat at full resolution; there it comes in hundredths of a second, which is all there
    is where the clock of another process cannot be read.
    """
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """Processor, cores, memory and system; nothing that names the machine."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def versions(server: ServerProcess) -> dict[str, str]:
    """Python, the packages in the path of a call, and the server."""
    found = {"python": platform.python_version(), "implementation": sys.implementation.name}
    found |= {name: version(name) for name in PACKAGES}
    told = server_info(server, "server")
    name = told.get("server_name", "redis")
    found["server"] = f"{name} {told.get(f'{name}_version') or told.get('redis_version', '?')}"
    return found


def server_settings(server: ServerProcess) -> dict[str, str]:
    """What durability and eviction the server was started with."""
    return {name: str(server.config.get(name, "")) or "none" for name in SERVER_SETTINGS}


def server_info(server: ServerProcess, section: str) -> Mapping[str, str]:
    """One section of the server's INFO."""
    reply = server.call("INFO", section)
    text = reply.decode() if isinstance(reply, bytes) else str(reply)
    lines = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
