"""Makes the API and its OpenAPI document: what that says of an operation beside its schemas (errors, headers, examples,
its permission), and of what stands in paths.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ninja import NinjaAPI

from dashboard.site.mount_point import mount_path
from machines.people.permissions import MEANINGS

from .authentication import Bearer, Session
from .schemas import Problem, Strict

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


PREFIX = "api/v1/"
IN_PATHS = {
    "machine": "its name",
    "id": "of the instance or bulk; see above for what has to be escaped",
    "queue": "its name",
    "job": "its number, such as `0-17`",
    "worker": "as the list of workers names it",
    "approval": "its number",
    "draft": "its number",
    "group": "its number",
    "number": "its number",
    "plan": "its number",
    "version": "its number",
    "webhook": "its number",
    "name": "the name of a schedule",
    "delivery": "its number",
    "view": "its number",
    "session": "its handle, as the list of sessions names it",
    "key": "the whole key",
}
"""What stands in paths: converters say how it is written, not what it is."""


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    found: dict[str, Any] = dict(api.get_openapi_schema(path_prefix=PREFIX))
    found["components"]["schemas"]["Problem"] = Problem.model_json_schema()
    found["servers"] = [{"url": mount_path().rstrip("/") or "/"}]
    for methods in found["paths"].values():
        for described in methods.values():
            for term in described["parameters"]:
                if term["in"] == "path":
                    term["description"] = IN_PATHS[term["name"]]
    return found


@lru_cache(maxsize=1)
def text() -> str:
    return json.dumps(document())


VERSION = "1"
ABOUT = (
    "Everything the pages can do, for programs: the same rights, rules and audit. Times are milliseconds since the"
    " epoch. Lists come in pages: `next` is the `cursor` of the page after, null on the last. Errors are problem"
    " details (RFC 9457) with a stable `code`. Ids in paths are percent-encoded; a slash in one is written `~2F`,"
    " a leading dot `~2E`, a tilde `~7E`."
)

api = NinjaAPI(
    title="Signalbox",
    version=VERSION,
    description=ABOUT,
    urls_namespace="api",
    openapi_url=None,
    docs_url=None,
    auth=[Bearer(), Session()],
    parser=Strict(),
)
