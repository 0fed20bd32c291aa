"""Painting counts, flow and the current state on a drawing, on the server: the page is right before any script runs.

``machines.diagrams`` says what may be painted: the text of ``.count`` and ``.flow``, a few classes, and nothing
else. Its tags are found by their fixed form; user-written text cannot hold one, since ``<`` is escaped in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard.pages.instances import replay
from dashboard.pages.machines import diagram_modes
from dashboard.pages.machines.diagram_modes import DEFAULT, Mode, Reading, short
from dashboard.shared import version_view
from dashboard.shared.version_view import Plan
from machines.diagrams import fold_id, state_id
from machines.engine import Instance, Live, Step
from machines.engine.definitions import StateOutline, TransitionOutline, durations

TAG = re.compile(
    r'<g id="(?P<part>[^"]*)" class="(?P<classes>[^"]*)"'
    r'|<(?P<tag>text|tspan) (?P<attributes>[^<>]*\bclass="(?P<slot>count|flow|told)"[^<>]*?) ?(?:/>|></(?:text|tspan)>)'
    r"|(?P<group><g\b)|</g>"
)


Address = Callable[[Mapping[str, str]], str]
"""The terms of another drawing -> the address of the same page with it."""


@dataclass(slots=True)
class Paint:
    """What goes on the parts of a drawing, by their ids."""

    counts: dict[str, str] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def mark(self, part: str, name: str) -> None:
        self.classes.setdefault(part, []).append(name)

    def on(self, svg: str) -> SafeString:
        return mark_safe(_Painter(self).painted(svg))  # noqa: S308  the drawing is ours; what is put in is escaped


class _Painter:
    """One pass over the tags of a drawing; remembers which part it is inside of."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._part = ""
        self._depth = 0
        self._link = 0  # how deep the link stands that is open

    def painted(self, svg: str) -> str:
        return TAG.sub(self._tag, svg)

    def _tag(self, match: re.Match[str]) -> str:
        if match["part"] is not None:
            return self._open(match["part"], match["classes"])
        if match["slot"] is not None:
            texts = self._paint.counts if match["slot"] != "flow" else self._paint.flows
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
        classes = " ".join([classes, *self._paint.classes.get(part, ())])
        link = self._paint.links.get(part)
        if link is None:
            return f'<g id="{part}" class="{classes}"'
        self._link = self._depth
        name = self._paint.names.get(part)
        said = f' aria-label="{escape(name)}"' if name else ""
        return f'<a href="{escape(link)}" id="{part}" class="{classes}"{said}'


def of_machine(
    plan: Plan,
    live: Live,
    chosen: str | None,
    mode: Mode = DEFAULT,
    *,
    troubled: Mapping[str, int] | None = None,
    bare: bool = False,
    search: Mapping[str, str] | None = None,
    partial: bool = False,
) -> SafeString:
    """What the mode tells, on states, lines and queues. A state is a link that filters the list by it, a line one to
    those that came to where it leads, the latest first.

    A state with states in it has their sum. Of a folded drawing, a line has the flow of all it stands for. What is
    wrong is marked in every mode. ``troubled``: leaf -> instances in error; ``bare``: no links, for a file.
    ``search``: the other terms of the list, which the links of states keep; ``partial``: there are at least as many as
    the counts say.
    """
    paint, reading = Paint(), diagram_modes.read(mode, plan, live, troubled or {})
    counts = plan.outline.counted(live.counts)
    for state, part in _drawn(plan):
        paint.counts[part] = reading.states.get(state, "") + ("+" if partial and mode is DEFAULT else "")
        kept = dict(search or {})
        paint.links[part] = _filter(plan, mode, **kept) if state == chosen else _state_url(plan, mode, state, kept)
        paint.names[part] = _said(state, counts[state], mode, reading)
        if counts[state]:
            paint.mark(part, "occupied")
        if heat := reading.heat.get(state):
            paint.mark(part, f"heat-{heat}")
    if chosen in plan.index["states"]:
        paint.mark(plan.index["states"][chosen], "chosen")
    _lines(plan, paint, mode)
    paint.flows = {part: short(taken) if taken else "" for part, taken in reading.flows.items()}
    _queues(plan, paint, live.queues, reading)
    _marks(plan, paint, mode, reading)
    _grips(plan, paint, lambda view: _address(plan, mode, state=chosen, **(version_view.NO_VIEW | dict(view))))
    if bare:
        paint.links = {}
    return paint.on(plan.svg)


def _lines(plan: Plan, paint: Paint, mode: Mode) -> None:
    """Each leads to those that came to where it leads."""
    for state, transition in _transitions(plan):
        part = plan.index["transitions"].get(transition.id)
        target = transition.targets[0] if transition.targets else transition.target or state.name
        if part is not None and target in plan.index["sums"]:
            paint.links.setdefault(part, _filter(plan, mode, state=target, order="newest"))


def _said(state: str, count: int, mode: Mode, reading: Reading) -> str:
    """The name of a state's link; ``static/js/modes.js`` says it the same way."""
    told = reading.states.get(state) if mode is not DEFAULT else ""
    return f"{state}: {short(count)}" + (f", {mode.label.lower()} {told}" if told else "")


def _state_url(plan: Plan, mode: Mode, state: str, kept: Mapping[str, str]) -> str:
    """Leads to the instances that the figure in the state counts."""
    wanted = {"error": "any"} if mode is diagram_modes.MODES["failures"] else kept
    return _filter(plan, mode, **{**wanted, "state": state})


def _marks(plan: Plan, paint: Paint, mode: Mode, reading: Reading) -> None:
    """Each leads to the list of what it counts; what is folded away, to the drawing that shows it."""
    for id, (state, of) in plan.index["marks"].items():
        paint.links[id] = _wrong_url(plan, mode, id.partition("-")[0], state, of == [state])
    for id, mark in reading.marks.items():
        paint.counts[id], paint.names[id] = mark.text, mark.said
        paint.mark(id, "shown")


def _wrong_url(plan: Plan, mode: Mode, kind: str, state: str, own: bool) -> str:
    if not own:
        return _address(plan, mode, **(version_view.NO_VIEW | plan.toggled(state)))
    wanted = {"error": "any"} if kind == "failing" else {"older": durations.written(plan.outline.state(state).sla)}
    return _filter(plan, mode, state=state, **wanted)


def _grips(plan: Plan, paint: Paint, address: Address) -> None:
    """The links that fold a state, and unfold it. ``address``: of this page with another drawing."""
    for state in plan.outline.states:
        if state.name in plan.foldable:
            part = fold_id(state.index)
            paint.links[part] = f"{address(plan.toggled(state.name))}#{part}"


def _transitions(plan: Plan) -> Iterator[tuple[StateOutline, TransitionOutline]]:
    return ((state, transition) for state in plan.outline.states for transition in state.transitions)


def _drawn(plan: Plan) -> Iterator[tuple[str, str]]:
    """The states that have a part of their own: in a folded drawing, not those that are folded away."""
    for state in plan.outline.states:
        if plan.index["states"].get(state.name) == state_id(state.index):
            yield state.name, state_id(state.index)


def of_instance(
    plan: Plan, instance: Instance, possible: Mapping[str, str], *, address: Address | None = None
) -> SafeString:
    """Every active state lit, in each region and around it, and the transitions that could be taken now.

    ``possible``: transition -> route kind. ``address``: of this page with another drawing.
    """
    paint = Paint()
    if address:
        _grips(plan, paint, address)
    for part in replay.parts(plan, instance.configuration):
        paint.mark(part, "current")
    for part in replay.ways(plan, (id for id, kind in possible.items() if kind in ("holds", "depends"))):
        paint.mark(part, "possible")
    for part in replay.ways(plan, instance.outcome.transitions if instance.outcome else ()):
        paint.mark(part, "taken")
    return paint.on(plan.svg)


def of_moment(plan: Plan, step: Step, other: Step | None = None, *, address: Address | None = None) -> SafeString:
    """Where a step led to is lit, the way it took marked; and, with a dashed frame, where ``other`` led to instead."""
    paint, lit = Paint(), replay.parts(plan, step.configuration)
    if address:
        _grips(plan, paint, address)
    for part in lit:
        paint.mark(part, "current")
    for part in replay.ways(plan, step.transitions):
        paint.mark(part, "taken")
    for part in replay.parts(plan, other.configuration) if other else ():
        if part not in lit:
            paint.mark(part, "compared")
    return paint.on(plan.svg)


def _queues(plan: Plan, paint: Paint, queues: Mapping[str, Mapping[str, int]], reading: Reading) -> None:
    for queue, part in plan.index["queues"].items():
        held = queues.get(queue, {})
        paint.counts[part] = reading.queues[queue]
        paint.links[part] = reverse("queue", args=[plan.machine, queue])
        if heat := reading.queue_heat.get(queue):
            paint.mark(part, f"heat-{heat}")
        if held.get("ready"):
            paint.mark(part, "occupied")
        if held.get("dead"):
            paint.mark(part, "dead")


def _filter(plan: Plan, mode: Mode, **wanted: str | None) -> str:
    return f"{_address(plan, mode, **wanted)}#instances"


def _address(plan: Plan, mode: Mode, **wanted: str | None) -> str:
    given = version_view.NO_VIEW | plan.view | {"mode": None if mode is DEFAULT else mode.name} | wanted
    query = urlencode({name: term for name, term in given.items() if term})
    return f"{reverse('machine', args=[plan.machine])}{f'?{query}' if query else ''}"
