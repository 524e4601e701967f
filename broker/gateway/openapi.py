"""The description of the API (OpenAPI 3.1), drawn from the same fields that the readers use."""

from collections.abc import Iterable
from typing import Any, Final, get_args

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from ..core import access, diagnosis, fleet, outcomes, schema
from ..core.access import Scope
from ..core.fields import Id, Name
from ..core.limits import JSON, LIMITS
from ..core.shape import Model, slots
from ..errors import ERROR_CODES, OUTCOME_CODES
from .bodies import LISTS, REQUESTS
from .identity import PUBLIC, needed
from .problems import MEDIA_TYPE

BEARER: Final = "bearer"
_MORE: Final = (
    access.ApiKey, access.NewKey, diagnosis.Awaited, diagnosis.Why, fleet.WorkerInfo, fleet.PoolCount, fleet.Fleet,
    *REQUESTS, *LISTS,
)  # fmt: skip
_RULES: Final[dict[Any, dict[str, JSON]]] = {
    Id: {"minLength": 1, "maxLength": LIMITS.id_chars, "pattern": r"^[^{}\x00-\x1f\x7f-\x9f]+$"},
    Name: {"maxLength": LIMITS.name_chars, "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
}
"""What a request's text has to be, beside text."""
_BOUNDS: Final = (("minimum", "ge"), ("maximum", "le"))
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
    500: "The gateway failed", 503: "The server cannot be reached", 504: "It took too long", 507: "The server is full",
}  # fmt: skip


def gives(name: str, *, http: int = 200, also: Iterable[int] = (), pages: bool = False) -> dict[str, Any]:
    """What a route answers, for its decorator: a wire type by its name, in pages or at once, and problems."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    done: dict[str, Any] = {"description": "Done", "content": content}
    if pages:
        done["headers"] = {"Link": _text("The next page, as `rel=next`; absent at the end.")}
    problems: dict[int, dict[str, Any]] = {
        code: {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
        for code, text in _PROBLEMS.items()
    }  # fmt: skip
    problems[429]["headers"] = {"Retry-After": _text("In how many seconds to come back.")}
    return {
        "status_code": http,
        "response_model": None,
        "responses": {**problems, http: done, **dict.fromkeys(also, done)},
    }


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def takes(name: str, example: JSON) -> dict[str, Any]:
    """What a route is sent, for its decorator: a body by its name, with an example."""
    body = {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": example}
    return {"openapi_extra": {"requestBody": {"required": True, "content": {"application/json": body}}}}


def describe(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Makes the application describe itself, with the scope that each route of `routers` needs.

    The description is drawn up at the first request for it.
    """
    needs = {
        (route.path_format, method.lower()): needed(route.endpoint)
        for router in routers for route in router.routes if isinstance(route, APIRoute)
        for method in route.methods or ()
    }  # fmt: skip

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _drawn(app, needs)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _drawn(app: FastAPI, needs: dict[tuple[str, str], Scope | str | None]) -> dict[str, Any]:
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
        for method, one in methods.items():
            if (scope := needs.get((path, method))) != PUBLIC:
                one["security"] = [{BEARER: [str(scope)] if scope else []}]
    return told


def _schemas() -> dict[str, JSON]:
    every: dict[str, Any] = dict(schema.described(schema.UNIONS, (*schema.OBJECTS, *_MORE)))
    every["Durability"] = schema.DURABILITY
    for one in REQUESTS:
        every[one.__name__] |= {
            "additionalProperties": False,
            "properties": _narrowed(one, every[one.__name__]),
        }
    return every | _LISTS | {"Outcome": _OUTCOME, "Problem": _PROBLEM}


def _narrowed(body: type[Model], drawn: dict[str, Any]) -> dict[str, JSON]:
    """The fields of a request's body, as narrow as they are read: another field or a longer id is refused."""
    fields: dict[str, JSON] = {}
    for slot in slots(body):
        info = body.model_fields[slot.name]
        kinds = (info.rebuild_annotation(), *get_args(info.annotation))
        rules = next((rule for kind, rule in _RULES.items() if kind in kinds), {})
        bounds = [(word, getattr(one, of, None)) for one in info.metadata for word, of in _BOUNDS]
        fields[slot.wire] = (
            drawn["properties"][slot.wire] | rules | {k: v for k, v in bounds if v is not None}
        )
    return fields


def _here(node: Any) -> Any:
    """The same, with references to where they lie in the description."""
    if isinstance(node, dict):
        return {
            key: item.replace("#/$defs/", "#/components/schemas/") if key == "$ref" else _here(item)
            for key, item in node.items()
        }
    return [_here(item) for item in node] if isinstance(node, list) else node
