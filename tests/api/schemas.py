"""Answers held against the OpenAPI document."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

import dashboard.api.v1  # noqa: F401  adds the operations that the document lists
from dashboard.api.framework.openapi import document


@cache
def operations() -> dict[str, dict[str, Any]]:
    paths = document()["paths"].values()
    return {one["operationId"]: one for methods in paths for one in methods.values()}


def fits(operation: str, answer: Any) -> None:
    """Its status is among those the document lists for the operation, and its body fits that one's schema."""
    responses = {str(status): described for status, described in operations()[operation]["responses"].items()}
    assert str(answer.status_code) in responses, f"{operation} answers {answer.status_code}, and does not say so"
    content = responses[str(answer.status_code)].get("content", {})
    kind = answer["Content-Type"].partition(";")[0]
    assert kind in content, f"{operation} answers {kind}, and says {list(content)}"
    if kind.endswith("json"):
        schema = content[kind]["schema"] | {"components": document()["components"]}
        Draft202012Validator(schema).validate(answer.json())
