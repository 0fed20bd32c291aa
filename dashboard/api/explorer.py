"""Renders the page that lists the API's operations, each with a command that calls it. It works without script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

REF = "#/components/schemas/"
DEEP = 3  # lists in lists that a type's name spells out


@dataclass(frozen=True, slots=True)
class Field:
    """``of``: the schema its values have, where it has one of its own on the page."""

    name: str
    type: str
    required: bool
    about: str
    of: str = ""
    where: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    status: str
    about: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """One operation as the page shows it. ``curl``: a command that calls it."""

    id: str
    method: str
    path: str
    summary: str
    about: str
    right: str
    terms: list[Field]
    body: list[Field]
    replies: list[Reply]
    curl: str


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    about: str
    operations: list[Shown]


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    context = {"sections": sections(), "reference": reference()}
    return render_page(request, "signalbox/api/explorer.html", context)


@lru_cache(maxsize=1)
def reference() -> SafeString:
    """Render operations, schemas and codes, which are the same for every person, once in a process."""
    context = {"sections": sections(), "schemas": schemas(), "codes": problems.list_codes()}
    return render_to_string("signalbox/api/_reference.html", context)


@lru_cache(maxsize=1)
def sections() -> list[Section]:
    found: dict[str, list[Shown]] = {tag["name"]: [] for tag in document()["tags"]}
    for path, methods in document()["paths"].items():
        for method, described in methods.items():
            found[described["tags"][0]].append(_describe(method.upper(), path, described))
    return [Section(tag["name"], tag["description"], found[tag["name"]]) for tag in document()["tags"]]


@lru_cache(maxsize=1)
def schemas() -> dict[str, tuple[str, list[Field]]]:
    """Return the schemas of all requests and responses: for each name the description and the fields."""
    named = document()["components"]["schemas"]
    return {name: (one.get("description", ""), list(_list_fields(one))) for name, one in sorted(named.items())}


def _describe(method: str, path: str, described: Mapping[str, Any]) -> Shown:
    content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    example = json.dumps(content.get("example", {}), indent=2) if content else ""
    terms = [_make_field(term) for term in described["parameters"]]
    about, _, right = described["description"].rpartition("Needs the right ")
    path = mount_path().rstrip("/") + path
    return Shown(
        described["operationId"], method, path, described["summary"], about.strip(), f"Needs the right {right}",
        terms, list(_list_fields(_resolve(schema))),
        [_reply(status, one) for status, one in sorted(described["responses"].items(), key=lambda item: str(item[0]))],
        _curl(method, path, example),
    )  # fmt: skip


def _make_field(term: Mapping[str, Any]) -> Field:
    schema = term["schema"]
    about, default = term.get("description", ""), schema.get("default")
    shown = "" if default in (None, "") else json.dumps(default).strip('"')
    return Field(
        term["name"], _describe_type(schema), bool(term.get("required")), about, where=term["in"], default=shown
    )


def _list_fields(schema: Mapping[str, Any]) -> Iterator[Field]:
    required = schema.get("required", [])
    for name, one in schema.get("properties", {}).items():
        yield Field(name, _describe_type(one), name in required, one.get("description", ""), _name(one))


def _describe_type(schema: Mapping[str, Any], depth: int = 0) -> str:
    """Describe a type in words: ``text``, ``list of InstanceOut``, ``whole number or null``."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "enum" in schema:
        return " | ".join(json.dumps(one).strip('"') or "(empty)" for one in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe_type(one, depth) for one in schema["anyOf"]))
    kind = schema.get("type", "anything")
    if kind == "array" and depth < DEEP:
        return f"list of {_describe_type(schema.get('items', {}), depth + 1)}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
    return names.get(kind, kind)


def _name(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema that this one refers to, itself or through its items; "" if there is none."""
    found = schema.get("$ref") or schema.get("items", {}).get("$ref")
    if not found:
        found = next((one["$ref"] for one in schema.get("anyOf", ()) if "$ref" in one), "")
    return str(found).removeprefix(REF)


def _resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = _name(schema)
    resolved: Mapping[str, Any] = document()["components"]["schemas"][name] if name else schema
    return resolved


def _reply(status: Any, described: Mapping[str, Any]) -> Reply:
    content = next(iter(described.get("content", {}).values()), {})
    return Reply(str(status), described.get("description", ""), _name(content.get("schema", {})))


def _curl(method: str, path: str, example: str) -> str:
    words = ["curl -H 'Authorization: Bearer …'"]
    if method == "POST":
        words.append("-H 'Content-Type: application/json'")
        words.append("-d '" + json.dumps(json.loads(example or "{}")).replace("'", "'\\''") + "'")
    elif method != "GET":
        words.append(f"-X {method}")
    return " \\\n  ".join([*words, path])
