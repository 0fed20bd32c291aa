"""Painting counts, flow and the current state on a drawing, on the server: the page is right before any script runs.

``machines.diagrams`` says what may be painted: the text of ``.count`` and ``.flow``, a few classes, and nothing
else. Its tags are found by their fixed form; user-written text cannot hold one, since ``<`` is escaped in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard.pages.plans import Plan
from machines.diagrams import active, state_id
from machines.engine import Instance, Live

TAG = re.compile(
    r'<g id="(?P<part>[^"]*)" class="(?P<classes>[^"]*)"'
    r'|<(?P<tag>text|tspan) (?P<attributes>[^<>]*\bclass="(?P<slot>count|flow)"[^<>]*?) ?(?:/>|></(?:text|tspan)>)'
    r"|</g>"
)


@dataclass(slots=True)
class Paint:
    """What goes on the parts of a drawing, by their ids."""

    counts: dict[str, str] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def mark(self, part: str, name: str) -> None:
        self.classes.setdefault(part, []).append(name)

    def on(self, svg: str) -> SafeString:
        return mark_safe(_Painter(self).painted(svg))  # noqa: S308  the drawing is ours; what is put in is escaped


class _Painter:
    """One pass over the tags of a drawing; remembers which part it is inside of."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._part = ""
        self._in_link = False

    def painted(self, svg: str) -> str:
        return TAG.sub(self._tag, svg)

    def _tag(self, match: re.Match[str]) -> str:
        if match["part"] is not None:
            return self._open(match["part"], match["classes"])
        if match["slot"] is not None:
            texts = self._paint.counts if match["slot"] == "count" else self._paint.flows
            text = escape(texts.get(self._part, ""))
            return f"<{match['tag']} {match['attributes']}>{text}</{match['tag']}>"
        closing, self._in_link = ("</a>" if self._in_link else "</g>"), False
        return closing

    def _open(self, part: str, classes: str) -> str:
        self._part = part
        classes = " ".join([classes, *self._paint.classes.get(part, ())])
        link = self._paint.links.get(part)
        if link is None:
            return f'<g id="{part}" class="{classes}"'
        self._in_link = True
        return f'<a href="{escape(link)}" id="{part}" class="{classes}"'


def of_machine(plan: Plan, live: Live, chosen: str | None) -> SafeString:
    """Counts on states and queues, flow on edges; each state a link that filters the list by it.

    A state with states in it has their sum. Of a folded drawing, a line has the flow of all it stands for.
    """
    paint = Paint()
    counts = plan.outline.counted(live.counts)
    for state, part in _drawn(plan):
        paint.counts[part] = short(counts[state])
        paint.links[part] = _filter(plan, None if state == chosen else state)
        if counts[state]:
            paint.mark(part, "occupied")
    if chosen in plan.index["states"]:
        paint.mark(plan.index["states"][chosen], "chosen")
    flows: Counter[str] = Counter()
    for transition, part in plan.index["transitions"].items():
        flows[part] += live.flow.get(f"{plan.version}:{transition}", 0)
    paint.flows = {part: short(taken) if taken else "" for part, taken in flows.items()}
    _queues(plan, paint, live.queues)
    return paint.on(plan.svg)


def _drawn(plan: Plan) -> Iterator[tuple[str, str]]:
    """The states that have a part of their own: in a folded drawing, not those that are folded away."""
    for state in plan.outline.states:
        if plan.index["states"].get(state.name) == state_id(state.index):
            yield state.name, state_id(state.index)


def of_instance(plan: Plan, instance: Instance, possible: Mapping[str, str]) -> SafeString:
    """Every active state lit, in each region and around it, and the transitions that could be taken now.

    ``possible``: transition -> route kind.
    """
    paint = Paint()
    states = plan.index["states"]
    for part in dict.fromkeys(states[state] for state in active(plan.outline, instance.configuration)):
        paint.mark(part, "current")
    ways = plan.index["transitions"]
    for part in dict.fromkeys(part for id, part in ways.items() if possible.get(id) in ("holds", "depends")):
        paint.mark(part, "possible")
    took = instance.outcome.transitions if instance.outcome else ()
    for part in dict.fromkeys(ways[id] for id in took if id in ways):
        paint.mark(part, "taken")
    return paint.on(plan.svg)


def _queues(plan: Plan, paint: Paint, queues: Mapping[str, Mapping[str, int]]) -> None:
    for queue, part in plan.index["queues"].items():
        held = queues.get(queue, {})
        paint.counts[part] = short(held.get("ready", 0))
        paint.links[part] = reverse("queue", args=[plan.machine, queue])
        if held.get("ready"):
            paint.mark(part, "occupied")
        if held.get("dead"):
            paint.mark(part, "dead")


def _filter(plan: Plan, state: str | None) -> str:
    terms = {"view": "top" if plan.folded else None, "state": state}
    query = urlencode({name: term for name, term in terms.items() if term})
    return f"{reverse('machine', args=[plan.machine])}{f'?{query}' if query else ''}#instances"


def short(number: int) -> str:
    """At most seven characters: ``12,345``, ``345k``, ``1.2M``. ``static/js/format.js`` says it the same way."""
    for least, unit, letter in ((999_500_000, 10**9, "G"), (999_500, 10**6, "M"), (99_999.5, 10**3, "k")):
        if number >= least:
            scaled = number / unit
            return f"{scaled:.1f}{letter}" if scaled < 10 else f"{scaled:,.0f}{letter}"
    return f"{number:,}"
