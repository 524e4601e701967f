"""The description of the API (OpenAPI 3.1), drawn from the same fields that the readers use."""

from collections.abc import Iterable
from typing import Any, Final, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ..core import access, diagnosis, fleet, outcomes, schema
from ..core.limits import JSON
from ..errors import ERROR_CODES, OUTCOME_CODES
from .bodies import LISTS, REQUESTS
from .problems import MEDIA_TYPE

BEARER: Final = "bearer"
_MORE: Final = (
    access.ApiKey, access.NewKey, diagnosis.Awaited, diagnosis.Why, fleet.WorkerInfo, fleet.PoolCount, fleet.Fleet,
    *REQUESTS, *LISTS,
)  # fmt: skip
_PROBLEM: Final[dict[str, JSON]] = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "examples": [*ERROR_CODES, *OUTCOME_CODES]},
        "detail": {"type": "string"},
        "field": {"type": "string"},
        "problem": {"type": "string"},
        "allowed": {"type": "string"},
        "outcome": {"type": "object"},
    },
}
_OUTCOME: Final[dict[str, JSON]] = {
    "oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in get_args(outcomes.Outcome)]
}
_LISTS: Final[dict[str, JSON]] = {
    "BatchOutcomes": {
        "type": "object",
        "required": ["outcomes"],
        "properties": {
            "outcomes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["interrupt_id", "ok", "code", "text"],
                    "properties": {
                        "interrupt_id": {"type": "string"}, "ok": {"type": "boolean"}, "code": {"type": "string"},
                        "text": {"type": "string"},
                    },
                },
            }
        },
    },
    "Active": {
        "type": "object",
        "required": ["session_id", "runs"],
        "properties": {
            "session_id": {"type": "string"},
            "runs": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    },
    "KeyList": {
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/ApiKey"}}},
    },
}  # fmt: skip
_PROBLEMS: Final = {
    400: "The request cannot be read", 401: "Nobody is known to ask", 403: "Not permitted", 404: "Unknown",
    409: "Somebody was first, or it conflicts", 410: "Its time is over, or it was taken back",
    413: "The body is too large", 415: "Not JSON", 422: "It does not fit", 429: "Too often",
    503: "The server cannot be reached", 504: "It took too long", 507: "The server is full",
}  # fmt: skip


def gives(name: str | None = None, *, http: int = 200, also: Iterable[int] = ()) -> dict[str, Any]:
    """What a route answers, for its decorator: a wire type by its name, and problems."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}} if name else None
    done: dict[str, Any] = {"description": "Done"} | ({"content": content} if content else {})
    problems = {
        code: {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
        for code, text in _PROBLEMS.items()
    }  # fmt: skip
    return {
        "status_code": http,
        "response_model": None,
        "responses": {**problems, http: done, **dict.fromkeys(also, done)},
    }


def takes(name: str, example: JSON) -> dict[str, Any]:
    """What a route is sent, for its decorator: a body by its name, with an example."""
    body = {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": example}
    return {"openapi_extra": {"requestBody": {"required": True, "content": {"application/json": body}}}}


def describe(app: FastAPI) -> None:
    """Makes the application describe itself; the description is drawn up at the first request for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _drawn(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _drawn(app: FastAPI) -> dict[str, Any]:
    told = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes,
        description="Questions of agents that wait, and their answers: one counts, whoever gives it.",
    )  # fmt: skip
    parts = told.setdefault("components", {})
    parts["schemas"] = _here(_schemas())
    scheme: dict[str, JSON] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, `brk_...`, or a token.",
    }
    parts["securitySchemes"] = {BEARER: scheme}
    for path, methods in told["paths"].items():
        for one in methods.values():
            if path.startswith("/v1"):
                one["security"] = [{BEARER: []}]
    return told


def _schemas() -> dict[str, JSON]:
    every: dict[str, JSON] = dict(schema.described(schema.UNIONS, (*schema.OBJECTS, *_MORE)))
    every["Durability"] = schema.DURABILITY
    return every | _LISTS | {"Outcome": _OUTCOME, "Problem": _PROBLEM}


def _here(node: Any) -> Any:
    """The same, with references to where they lie in the description."""
    if isinstance(node, dict):
        return {
            key: item.replace("#/$defs/", "#/components/schemas/") if key == "$ref" else _here(item)
            for key, item in node.items()
        }
    return [_here(item) for item in node] if isinstance(node, list) else node
