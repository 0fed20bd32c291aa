"""Overlays counts, flow and the current state on a drawing, on the server: the page is right before any script runs.

``machines.diagrams`` says what an overlay may change: the text of ``.count`` and ``.flow``, a few classes, and nothing
else. Its tags are found by their fixed form; user-written text cannot hold one, since ``<`` is escaped in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from machines.diagrams import active, fold_id

from .version_view import VersionView

TAG = re.compile(
    r'<g id="(?P<part>[^"]*)" class="(?P<classes>[^"]*)"'
    r'|<(?P<tag>text|tspan) (?P<attributes>[^<>]*\bclass="(?P<slot>count|flow|told)"[^<>]*?) ?(?:/>|></(?:text|tspan)>)'
    r"|(?P<group><g\b)|</g>"
)


Address = Callable[[Mapping[str, str]], str]
"""Takes the terms of another drawing and returns the address of the same page with it."""


@dataclass(slots=True)
class Overlay:
    """Holds texts, classes and links for the parts of a drawing, by their ids."""

    counts: dict[str, str] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def mark(self, part: str, name: str) -> None:
        self.classes.setdefault(part, []).append(name)

    def draw_on(self, svg: str) -> SafeString:
        return mark_safe(_OverlayWriter(self).write(svg))  # noqa: S308  the drawing is trusted; inserted text is escaped


class _OverlayWriter:
    """Writes an overlay into a drawing in one pass over its tags, and remembers which part it is inside of."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._part = ""
        self._depth = 0
        self._link = 0  # depth of the open link

    def write(self, svg: str) -> str:
        return TAG.sub(self._tag, svg)

    def _tag(self, match: re.Match[str]) -> str:
        if match["part"] is not None:
            return self._open(match["part"], match["classes"])
        if match["slot"] is not None:
            texts = self._overlay.counts if match["slot"] != "flow" else self._overlay.flows
            text = escape(texts.get(self._part, ""))
            return f"<{match['tag']} {match['attributes']}>{text}</{match['tag']}>"
        if match["group"] is not None:
            self._depth += 1
            return match["group"]
        self._depth -= 1
        if self._depth + 1 != self._link:
            return "</g>"
        self._link = 0
        return "</a>"

    def _open(self, part: str, classes: str) -> str:
        self._part, self._depth = part, self._depth + 1
        classes = " ".join([classes, *self._overlay.classes.get(part, ())])
        link = self._overlay.links.get(part)
        if link is None:
            return f'<g id="{part}" class="{classes}"'
        self._link = self._depth
        name = self._overlay.names.get(part)
        label = f' aria-label="{escape(name)}"' if name else ""
        return f'<a href="{escape(link)}" id="{part}" class="{classes}"{label}'


def link_folds(view: VersionView, overlay: Overlay, address: Address) -> None:
    """Add the links that fold and unfold states."""
    for state in view.outline.states:
        if state.name in view.foldable:
            part = fold_id(state.index)
            overlay.links[part] = f"{address(view.toggle_fold(state.name))}#{part}"


def find_state_parts(view: VersionView, configuration: Iterable[str]) -> list[str]:
    """Return the ids of the parts for the states that are active when these leaves are."""
    states = view.index["states"]
    return list(dict.fromkeys(states[name] for name in active(view.outline, configuration) if name in states))


def find_transition_parts(view: VersionView, transitions: Iterable[str]) -> list[str]:
    """Return the ids of the lines for these transitions."""
    drawn = view.index["transitions"]
    return list(dict.fromkeys(drawn[id] for id in transitions if id in drawn))
