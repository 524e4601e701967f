"""What the page about the HTTP interface is generated from: its own description, and the numbers of a gateway."""

import re
from collections.abc import Iterator
from typing import Any

from broker import AsyncBroker
from broker.gateway import GatewaySettings, create_app
from broker.gateway.problems import CODES, TITLES


def description() -> dict[str, Any]:
    """The description of the interface, as a gateway gives it."""
    return create_app(AsyncBroker("redis://127.0.0.1:1")).openapi()


def route_rows() -> Iterator[tuple[str, ...]]:
    """Every route: what is sent, what comes back, who may."""
    for path, methods in description()["paths"].items():
        for method, one in methods.items():
            (scope,) = one.get("security", [{"bearer": [""]}])[0]["bearer"]
            sent = _name(one.get("requestBody", {}))
            done = {_name(response) for code, response in one["responses"].items() if code.startswith("2")}
            codes = ", ".join(sorted(code for code in one["responses"] if code.startswith("2")))
            yield (
                f"`{method.upper()} {path}`",
                f"`{scope}`" if scope else "anybody",
                f"`{sent}`" if sent else _parameters(one),
                f"{codes} {' '.join(f'`{name}`' for name in sorted(done) if name)}".strip(),
                " ".join(one["description"].split()),
            )


def body_rows() -> Iterator[tuple[str, ...]]:
    """Every body of a request, with its fields."""
    told = description()
    used = {
        _name(one.get("requestBody", {})) for methods in told["paths"].values() for one in methods.values()
    }
    for name, one in sorted(told["components"]["schemas"].items()):
        if name in used | {"BatchItem"}:
            fields, required = one["properties"], one.get("required", [])
            yield (
                f"`{name}`",
                ", ".join(f"`{field}`" for field in fields if field in required),
                ", ".join(f"`{field}`" for field in fields if field not in required),
            )


def problem_rows() -> Iterator[tuple[str, ...]]:
    """Every problem that HTTP itself has; the broker's own are in the table of errors."""
    for http, code in CODES.items():
        yield f"`{code}`", str(http), TITLES[code]


def number_rows(told: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Every number of a gateway, with what the source says of it."""
    usual = GatewaySettings()
    for name in GatewaySettings.__dataclass_fields__:
        yield f"`{name}`", f"{getattr(usual, name):,}", told[name]


def _name(part: dict[str, Any]) -> str:
    schema = part.get("content", {}).get("application/json", {}).get("schema", {})
    return re.sub(r".*/", "", schema.get("$ref", ""))


def _parameters(one: dict[str, Any]) -> str:
    return ", ".join(f"`{each['name']}`" for each in one.get("parameters", []) if each["in"] == "query")
