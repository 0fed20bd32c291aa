"""Suggests how a query line goes on: keys, names of states and tags, data fields."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.shared.diagrams import version_view
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_json
from dashboard.shared.search import query_line
from machines.engine.definitions import Outline
from machines.instances.queries import redactor_of
from machines.people.actor import Actor

MOST = 20  # suggestions
TIMES = ("5m", "15m", "1h", "6h", "24h", "7d")


@require("view")
@require_safe
def suggest(request: HttpRequest, machine: str) -> JsonResponse:
    """Answer ``{"words": [...]}`` for ``?word=state:Wa``: whole terms that the last word of a line may become."""
    word = request.GET.get("word", "")[: query_line.MAX_LINE]
    view = version_view.load_version(machine, redacted_engine(request).live(machine).version)
    hidden = redactor_of(Actor.of(request), machine).fields
    words = [text for text in _list_terms(word, view.outline, hidden) if text.lower().startswith(word.lower())]
    return answer_json({"words": list(dict.fromkeys(words))[:MOST]})


def _list_terms(word: str, outline: Outline, hidden: frozenset[str]) -> Iterator[str]:
    """Yield terms, whole or up to their sign; those with a value only behind their key."""
    for key in query_line.KEYS:
        sign = ">" if key == "age" else ":"
        if not word.lower().startswith(f"{key}{sign}"):
            yield f"{key}{sign}"
            continue
        yield from (f"{key}{sign}{query_line.quote(value)}" for value in _list_values(key, outline))
    for field in outline.data:
        if field.name in hidden:
            continue
        name = f"{query_line.DATA}{field.name}"
        if "boolean" in field.types:
            yield from (f"{name}:true", f"{name}:false")
        else:
            yield f"{name}:"
            if "integer" in field.types or "number" in field.types:
                yield from (f"{name}>", f"{name}<")


def _list_values(key: str, outline: Outline) -> Iterator[str]:
    if key == "state":
        yield from (state.name for state in outline.states if state.type != "history" and state.name != outline.root)
    elif key == "tag":
        yield from (tag for state in outline.states for tag in state.tags)
    elif key in ("age", "created"):
        yield from TIMES
    elif key == "suspended":
        yield from ("yes", "no")
    elif key == "error":
        yield "any"
