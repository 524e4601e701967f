"""Encrypted connections, with a server that can: Debian's is built with TLS, those of the wheels are not."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from broker import AsyncBroker, Broker, Unavailable
from broker.testing import ServerProcess

pytestmark = pytest.mark.system

ASK = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own signing; its key lies beside it."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [*ASK.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


@pytest.fixture
def url(start_server: Callable[..., ServerProcess], certificate: Path) -> str:
    program = shutil.which("redis-server")
    assert program, "no redis-server with TLS is on PATH"
    free = start_server(port=0)
    port = free.port
    free.close()
    config = {
        "tls-port": port or 0, "tls-cert-file": certificate, "tls-key-file": certificate.with_name("key.pem"),
        "tls-ca-cert-file": certificate, "tls-auth-clients": "no",
    }  # fmt: skip
    start_server(config, program=Path(program))
    return f"rediss://127.0.0.1:{port}/0"


async def test_by_a_url(url: str, certificate: Path) -> None:
    async with AsyncBroker(f"{url}?ssl_ca_certs={certificate}", patience=1) as broker:
        started = await broker.start("support", session="s")
        async with broker.take(started.run_id) as run:
            await run.finish()
        await broker.wait(run.id, 5)
    with Broker(f"{url}?ssl_ca_certs={certificate}", patience=1) as blocking:
        assert blocking.runs.get(run.id).id == run.id


async def test_by_somebodys_client(url: str, certificate: Path) -> None:
    with redis.Redis.from_url(url, ssl_ca_certs=str(certificate)) as given:
        async with AsyncBroker(client=given, patience=1) as broker:
            await broker.start("support", session="s")
        with Broker(client=given, patience=1) as blocking:
            assert len(blocking.history("s")) == 1


async def test_a_certificate_nobody_vouches_for_is_refused(url: str) -> None:
    with pytest.raises(Unavailable):
        await AsyncBroker(url, patience=0.1).open()
    with pytest.raises(Unavailable):
        Broker(url, patience=0.1).open()
