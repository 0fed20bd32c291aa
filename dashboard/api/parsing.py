"""Reading a request's JSON: as strict as what goes into an instance has to be."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser


class Strict(Parser):
    """UTF-8 alone, as JSON is sent; no NaN and no Infinity, which it does not have; and no name twice, of which one
    would silently win."""

    def parse_body(self, request: HttpRequest) -> Any:
        text = request.body.decode("utf-8-sig")
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
