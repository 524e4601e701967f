"""What went wrong, as problem details (RFC 9457) with the codes of the one table of errors."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..core.limits import JSON
from ..core.outcomes import Outcome
from ..errors import OUTCOME_CODES, BrokerError

MEDIA_TYPE: Final = "application/problem+json"
TITLES: Final[dict[str, str]] = {
    "unauthenticated": "Nobody is known to ask",
    "not_permitted": "Not permitted",
    "not_found": "No such resource",
    "unreadable": "The request cannot be read",
    "invalid": "The request does not fit",
    "too_large": "The body is too large",
    "too_often": "Too many requests",
    "wrong_media": "Not JSON",
    "wrong_method": "Not this way",
    "broker_error": "The broker failed",
}


CODES: Final[dict[int, str]] = {
    400: "unreadable",
    401: "unauthenticated",
    403: "not_permitted",
    404: "not_found",
    405: "wrong_method",
    413: "too_large",
    415: "wrong_media",
    429: "too_often",
}
"""What is said of what HTTP itself refuses."""


class Problem(JSONResponse):
    """One problem as a response."""

    media_type = MEDIA_TYPE

    def __init__(
        self, http: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **facts: JSON
    ) -> None:
        title = TITLES.get(code, code.replace("_", " ").capitalize())
        body = {"type": f"urn:interrupt-broker:error:{code}", "title": title, "status": http, "code": code}
        super().__init__(body | {"detail": detail} | facts, status_code=http, headers=dict(headers or {}))

    def render(self, content: JSON) -> bytes:
        """The body. What names a field may be anybody's text, so half a surrogate pair is told as `?`."""
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def of_outcome(outcome: Outcome) -> Problem:
    """An outcome other than success, with all its facts (who won, when, with what)."""
    told: Any = outcome.to_json()
    facts = {name: value for name, value in told.items() if name != "code"}
    return Problem(OUTCOME_CODES[outcome.code].http, outcome.code, f"{outcome}.", outcome=facts)


def of_error(error: BrokerError) -> Problem:
    """An error of the broker. What it says names fields and ids, never values."""
    facts: dict[str, JSON] = {
        name: value for name in ("field", "problem", "allowed", "kind", "id")
        if isinstance(value := getattr(error, name, None), str)
    }  # fmt: skip
    return Problem(error.http, error.code, str(error), **facts)


def install(app: FastAPI) -> None:
    """Every fault of a request ends as a problem, whoever found it."""

    @app.exception_handler(BrokerError)
    async def broker_error(_: Request, error: BrokerError) -> Problem:
        return of_error(error)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Problem:
        code, headers = CODES.get(error.status_code, "invalid"), dict(error.headers or {})
        if error.status_code == 405:  # noqa: PLR2004 - the method is not one of this resource
            headers["Allow"] = _allowed(app, request) or headers.get("Allow", "")
        return Problem(error.status_code, code, str(error.detail), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def unfit(_: Request, error: RequestValidationError) -> Problem:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Problem(422, "invalid", f"{where} {first['msg']}.", field=where, problem=first["msg"])

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Problem:
        return Problem(500, "broker_error", "The gateway failed. Its log says how.")


def _allowed(app: FastAPI, request: Request) -> str:
    """The methods of a resource, of all its routes together; empty for one that the description leaves out."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    for template, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{[^}]+}", "[^/]+", re.escape(template)), path):
            known = {one.upper() for one in methods}
            return ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))
    return ""
