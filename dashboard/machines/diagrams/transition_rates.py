"""Computes how often each transition of a version is taken, from the kept statistics, and the time in state from that.

``static/signalbox/js/diagram/modes.js`` goes on from these figures with the live counters.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dashboard.shared.diagrams.version_view import VersionView
from dashboard.shared.errors.panels import Panels
from dashboard.shared.times import times
from machines.engine import Live, SignalboxError
from machines.engine.definitions import Outline, StateOutline, TransitionOutline
from machines.statistics import present as statistics

log = logging.getLogger(__name__)

MINUTE = 60_000  # ms


@dataclass(frozen=True, slots=True)
class TransitionRates:
    """Holds what was counted in the last ``window`` ms, up to ``at``: by transition, and of ``others``, the versions
    that the diagram does not show. ``exits``: state -> the transitions by which instances leave it; ``around``: state
    -> those of its ancestors. Without measurements ``window`` is 0.
    """

    window: int = 0
    at: int = 0
    counted: Mapping[str, int] = field(default_factory=dict)
    others: int = 0
    taken: Mapping[str, int] = field(default_factory=dict)
    taken_by_others: int = 0
    exits: Mapping[str, list[str]] = field(default_factory=dict)
    around: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def interval(self) -> str:
        """Return ``over the last 15 min``, or why there are no rates."""
        if not self.window:
            return "no rates: workers measure them once a minute, and none has lately"
        return f"over the last {times.format_age(self.window / 1000)}"

    @property
    def as_json(self) -> str:
        """Return what the script goes on from. ``base`` is added to a live counter, which is for all time."""
        base = {id: self.counted.get(id, 0) - self.taken.get(id, 0) for id in {*self.counted, *self.taken}}
        return json.dumps(
            {
                "window": self.window,
                "at": self.at,
                "base": base,
                "others": self.others - self.taken_by_others,
                "exits": self.exits,
                "around": self.around,
            }
        )

    def per_minute(self, ids: Iterable[str]) -> float:
        """Return how often a minute these transitions are taken together; 0 without measurements."""
        return sum(self.counted.get(id, 0) for id in ids) * MINUTE / self.window if self.window else 0.0

    def estimate_stays(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Estimate the mean time in each state, ms, by Little's law: instances in the state / exits per minute.

        A state is left out if nothing leaves it, and if instances leave by a transition of an enclosing state or in
        another version, since those exits cannot be counted separately.
        """
        if self.others:
            return {}
        found = {}
        for state, count in counts.items():
            leaving = self.per_minute(self.exits.get(state, ()))
            if count and leaving and not self.per_minute(self.around.get(state, ())):
                found[state] = count / leaving * MINUTE
        return found


def read_rates(view: VersionView, live: Live, panels: Panels) -> TransitionRates:
    """Read the rates of a version. Statistics that cannot be read are left out: the page goes on without them."""
    exits, around = list_exits(view.outline)
    try:
        flow = panels.read("rates", lambda: statistics.recent_flow(live), None)
    except SignalboxError as error:
        log.warning("the rates of %s cannot be read: %s", view.machine, error)
        flow = None
    if flow is None:
        return TransitionRates(exits=exits, around=around)
    counted, others = _split(flow.counted, view.version)
    taken, taken_by_others = _split(live.flow, view.version)
    return TransitionRates(flow.window, flow.at, counted, others, taken, taken_by_others, exits, around)


def _split(flow: Mapping[str, int], version: int) -> tuple[dict[str, int], int]:
    """Return the counts of one version by transition, and the sum of all others."""
    before = f"{version}:"
    own = {edge.removeprefix(before): count for edge, count in flow.items() if edge.startswith(before)}
    return own, sum(flow.values()) - sum(own.values())


def list_exits(outline: Outline) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """List the transitions that leave each state, and those that leave it from one of its ancestors."""
    inside: dict[str, set[str]] = {state.name: set() for state in outline.states}
    for state in outline.states:
        for above in outline.lineage(state.name):
            inside[above.name].add(state.name)
    exits = {state.name: _list_own_exits(outline, state, inside[state.name]) for state in outline.states}
    around = {
        state.name: [
            each.id for above in outline.lineage(state.name)[1:] for each in above.transitions if _list_targets(each)
        ]
        for state in outline.states
    }
    return exits, {name: ids for name, ids in around.items() if ids}


def _list_own_exits(outline: Outline, state: StateOutline, inside: set[str]) -> list[str]:
    own = [each.id for each in state.transitions if _list_targets(each)]
    inner = [
        each.id
        for name in sorted(inside - {state.name})
        if (source := outline.state(name)) is not None
        for each in source.transitions
        if not inside.issuperset(_list_targets(each))
    ]
    return own + inner


def _list_targets(transition: TransitionOutline) -> tuple[str, ...]:
    """List the states that a transition leads to; none where the state is not left."""
    return transition.targets or ((transition.target,) if transition.target else ())
