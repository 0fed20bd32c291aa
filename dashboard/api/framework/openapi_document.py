"""Builds the OpenAPI document once in each process. Its paths begin at its server, where the pages are mounted."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from dashboard.site.mount_point import mount_path

from .api import api
from .schemas import Problem

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
    "plan": "its number",
    "version": "its number",
    "webhook": "its number",
    "name": "the name of a schedule",
    "delivery": "its number",
    "view": "its number",
    "link": "as the list of links names it",
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


@lru_cache(maxsize=256)
def terms(operation: str) -> frozenset[str]:
    """Return the names that an operation takes in the query of its address."""
    described = (one for methods in document()["paths"].values() for one in methods.values())
    found = next(one for one in described if one["operationId"] == operation)
    return frozenset(part["name"] for part in found["parameters"] if part["in"] == "query")
