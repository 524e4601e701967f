"""An identity provider: a process that publishes the keys in a directory, and the tokens that they sign.

python -m tests.gateway.issuer DIRECTORY     # prints its port, notes each look at its keys in DIRECTORY/looks
"""

import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "broker"


@dataclass
class Issuer:
    """The process, and the keys it has published."""

    directory: Path
    url: str
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def jwks_url(self) -> str:
        """Where its keys are."""
        return f"{self.url}/jwks"

    @property
    def looks(self) -> int:
        """How often its keys were fetched."""
        path = self.directory / "looks"
        return len(path.read_bytes()) if path.exists() else 0

    def publish(self, *names: str, curve: bool = False) -> None:
        """Publishes keys of these names, and no others."""
        rows = []
        for name in names:
            key = self.keys.setdefault(name, ec.generate_private_key(ec.SECP256R1()) if curve else
                                       rsa.generate_private_key(65537, 2048))  # fmt: skip
            kind = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
            public = kind.to_jwk(key.public_key(), as_dict=True)
            rows.append(
                public | {"kid": name, "use": "sig", "alg": "ES256" if kind is ECAlgorithm else "RS256"}
            )
        whole = self.directory / "whole"
        whole.write_text(json.dumps({"keys": rows}))
        whole.rename(self.directory / "jwks")

    def token(self, name: str = "one", *, alg: str = "RS256", kid: str | None = None, **claims: Any) -> str:
        """A token of somebody, signed with one of its keys; a claim of None is left out."""
        now = int(time.time())
        whole = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600} | claims
        said = {key: value for key, value in whole.items() if value is not None}
        return jwt.encode(said, self.keys[name], algorithm=alg, headers={"kid": kid or name})


@contextmanager
def issuing(directory: Path) -> Generator[Issuer]:
    """An issuer with one key, in a process of its own."""
    command = [sys.executable, "-m", "tests.gateway.issuer", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            issuer = Issuer(directory, f"http://127.0.0.1:{int(process.stdout.readline())}")
            issuer.publish("one")
            yield issuer
        finally:
            process.kill()


class _Handler(BaseHTTPRequestHandler):
    directory: Path

    def do_GET(self) -> None:
        with (self.directory / "looks").open("ab") as looks:
            looks.write(b".")
        body = (self.directory / "jwks").read_bytes()
        self.send_response(200 if self.path == "/jwks" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the looks are noted."""


if __name__ == "__main__":
    _Handler.directory = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)  # noqa: T201 - whoever started it reads this
    server.serve_forever()
