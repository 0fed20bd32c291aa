"""Describes what the OpenAPI document says of an operation beside its schemas: errors, headers, examples, its
permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machines.people.permissions import MEANINGS

if TYPE_CHECKING:
    from .operation import Operation

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
WORDS = {
    400: "The request is invalid.",
    401: "No credentials, or invalid ones.",
    403: "A permission is missing, or the CSRF token of a session.",
    404: "Not found.",
    409: "Conflict with the current state.",
    413: "The body exceeds the limit for these permissions.",
    412: "If-Match names another revision than there is.",
    422: "Validation failed, or the machine refused the event.",
    429: "Too many requests; see Retry-After.",
    503: "Redis unavailable.",
}
LIMITS = {
    "RateLimit": {
        "description": "Remaining requests, and the seconds until the limit resets.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {"description": "The limit: q requests in w seconds.", "schema": {"type": "string"}},
}
KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "A repeated request with the same key within a day is applied once and returns the first response.",
    "example": "6f1c0e5a-ship-o-17",
}
MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "The revision the caller saw, as ETag had it: any other answers 412 and changes nothing.",
    "example": '"7"',
}


def describe(operation: Operation) -> dict[str, Any]:
    """Return the ``openapi_extra`` of an operation."""
    statuses = {400, 401, 403, 422, 429, 503, *operation.refusals} | ({404} if "{" in operation.path else set())
    statuses |= {409} if operation.changes else set()
    statuses |= {412} if operation.matches else set()
    statuses |= {413} if operation.most else set()
    extra: dict[str, Any] = {
        "x-right": operation.right,
        "responses": {status: {"description": WORDS[status], "content": PROBLEM} for status in sorted(statuses)},
    }
    headers = ([KEY] if operation.once else []) + ([MATCH] if operation.matches else [])
    if headers:
        extra["parameters"] = headers
    if operation.example is not None:
        extra["requestBody"] = {"content": {"application/json": {"example": operation.example}}}
    if operation.media_type:
        content = {operation.media_type: {"schema": {"type": "string"}}}
        extra["responses"][200] = {"description": "OK", "content": content}
    return extra


def needs(operation: Operation) -> str:
    where = "on the machine" if "machine}" in operation.path else "everywhere" if operation.everywhere else "anywhere"
    return f"Needs the right `{operation.right}` {where}: to {MEANINGS[operation.right]}."
