"""Renders the page that lists the API's operations, each with a command that calls it. It works without script."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from dashboard.shared.errors import problems
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from dashboard.site.mount_point import mount_path

from .framework.openapi import document
from .framework.schema_types import find_name


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    context = {"sections": sections(), "reference": reference()}
    return render_page(request, "signalbox/api/explorer.html", context)


@lru_cache(maxsize=1)
def reference() -> SafeString:
    """Render operations, schemas and codes, which are the same for every person, once in a process."""
    schemas = sorted(document()["components"]["schemas"].items())
    context = {"sections": sections(), "schemas": schemas, "codes": problems.list_codes()}
    return render_to_string("signalbox/api/_reference.html", context)


@lru_cache(maxsize=1)
def sections() -> list[dict[str, Any]]:
    """List the tags of the document, each with its ``operations``."""
    found: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document()["tags"]}
    for path, methods in document()["paths"].items():
        for method, described in methods.items():
            found[described["tags"][0]].append(_present(method.upper(), path, described))
    return [tag | {"operations": found[tag["name"]]} for tag in document()["tags"]]


def _present(method: str, path: str, described: dict[str, Any]) -> dict[str, Any]:
    """Return an operation with the schema of its ``body``, its ``replies``, and ``curl``: a command that calls it."""
    content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    body, path = content.get("schema", {}), mount_path().rstrip("/") + path
    about, _, right = described["description"].rpartition("Needs the right ")
    return described | {
        "method": method, "path": path, "about": about.strip(), "right": f"Needs the right {right}",
        "body": document()["components"]["schemas"].get(find_name(body), body),
        "replies": sorted((str(code), reply, _find_schema(reply)) for code, reply in described["responses"].items()),
        "curl": _curl(method, path, content.get("example", {})),
    }  # fmt: skip


def _find_schema(reply: Mapping[str, Any]) -> str:
    content = next(iter(reply.get("content", {}).values()), {})
    return find_name(content.get("schema", {}))


def _curl(method: str, path: str, example: Any) -> str:
    words = ["curl -H 'Authorization: Bearer …'"]
    if method == "POST":
        words.append("-H 'Content-Type: application/json'")
        words.append("-d '" + json.dumps(example).replace("'", "'\\''") + "'")
    elif method != "GET":
        words.append(f"-X {method}")
    return " \\\n  ".join([*words, path])
