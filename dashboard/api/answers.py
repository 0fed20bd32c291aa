"""What the OpenAPI document says of an operation beside its schemas: errors, headers, examples, its right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machines.access import MEANINGS

if TYPE_CHECKING:
    from dashboard.api.door import Operation

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
WORDS = {
    400: "Something in it cannot be taken.",
    401: "No credentials, or none that hold.",
    403: "The right is missing, or the CSRF token of a session.",
    404: "It is not there.",
    409: "It is not as the caller saw it, or cannot be done now.",
    413: "The body is larger than these rights may send.",
    412: "If-Match names another revision or version than there is.",
    422: "The request does not fit, or the machine refused.",
    429: "Too many requests: Retry-After says when to come back.",
    503: "Redis does not answer.",
}
LIMITS = {
    "RateLimit": {
        "description": "What is left of the budget, and when all of it is there again.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {"description": "The budget: q requests in w seconds.", "schema": {"type": "string"}},
}
KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "The same key with the same request counts once, for a day; the answer is the first one's.",
    "example": "6f1c0e5a-ship-o-17",
}
MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "The revision or version the caller saw, as ETag had it: any other answers 412 and changes nothing.",
    "example": '"7"',
}


def described(
    operation: Operation, refusals: tuple[int, ...], *, matches: bool, example: Any, media_type: str
) -> dict[str, Any]:
    """The ``openapi_extra`` of an operation."""
    statuses = {400, 401, 403, 422, 429, 503, *refusals} | ({404} if "{" in operation.path else set())
    statuses |= {409} if operation.changes else set()
    statuses |= {412} if matches else set()
    statuses |= {413} if operation.most else set()
    extra: dict[str, Any] = {
        "x-right": operation.right,
        "responses": {status: {"description": WORDS[status], "content": PROBLEM} for status in sorted(statuses)},
    }
    headers = ([KEY] if operation.once else []) + ([MATCH] if matches else [])
    if headers:
        extra["parameters"] = headers
    if example is not None:
        extra["requestBody"] = {"content": {"application/json": {"example": example}}}
    if media_type:
        extra["responses"][200] = {
            "description": "OK",
            "content": {media_type: {"schema": {"type": "string"}}},
        }
    return extra


def needs(operation: Operation) -> str:
    where = "on the machine" if "machine}" in operation.path else "everywhere" if operation.everywhere else "anywhere"
    return f"Needs the right `{operation.right}` {where}: to {MEANINGS[operation.right]}."
