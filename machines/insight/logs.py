"""Holds a log from elsewhere against a definition: which of its steps does the definition not have?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from machines.engine.definitions import outline

from .discovery import read_traces
from .errors import BadSearch
from .facts import CREATE
from .records import Conformance, Deviation, Extent
from .rules import Rule, Rules, find_ends

SENT = re.compile(r"\b(?:raise|send) ([\w.-]+)")
Places = frozenset[str]  # leaves where a case may be: a log does not tell how guards decided


def check_log(text: str, definition: Mapping[str, Any], version: int, *, most: int = 100) -> Conformance:
    """Answer which steps of a log a definition does not have. An activity is the state of its name or description, as
    in a draft, which the step enters; otherwise an event. Timers, results of jobs and raised events may come between
    two activities; activities in parentheses, steps of the engine itself, stay unchecked, and may lead anywhere.
    Raises BadLog, and BadSearch for a definition with parallel states."""
    traces = read_traces(text)
    replay = _Replay(definition)
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], str] = {}
    fitting = unchecked = 0
    for case, trace in traces.items():
        places, fits = Places(), True
        for one in trace:
            if one.name.startswith("("):
                unchecked += 1
                places = places if one.name == CREATE else replay.leaves
                continue
            places, wrong = replay.follow(places, one.name)
            if wrong:
                fits = False
                found[wrong] += 1
                examples.setdefault(wrong, case)
        fitting += fits
    rows = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    deviations = tuple(Deviation(version, *step, count, examples[step]) for step, count in rows[:most])
    extent = Extent(len(traces), sum(map(len, traces.values())), left_out=len(rows[most:]))
    return Conformance(extent, fitting, unchecked, deviations)


class _Replay:
    """``_states``: name or description -> leaves; ``_silent``: the transitions of no activity."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        found, self._rules = outline(definition), Rules.of(definition)
        if any(state.type == "parallel" for state in found.states):
            raise BadSearch("a log does not tell the states of parallel regions, which this definition has")
        self.leaves = Places(found.leaves)
        self._states: dict[str, Places] = {}
        for state in found.states:
            for name in {state.name, state.description} - {""}:
                self._states[name] = self._states.get(name, Places()) | Places(found.leaves_of(state.name))
        taken = [one for state in found.states for one in state.transitions]
        lists = [*(one.actions for one in taken), *(one.entry + one.exit for one in found.states)]
        own = {name for actions in lists for text in actions for name in SENT.findall(text)}
        own |= {event for one in taken if one.cause != "on" for event in one.events}
        self._silent = [one for one in self._rules.transitions.values() if not one.events or any(map(one.takes, own))]
        self._begin = Places(find_ends(found, (found.initial,))) & self.leaves
        self.follow = cache(self._follow)

    def _follow(self, places: Places, name: str) -> tuple[Places, tuple[str, str, str] | None]:
        """Return where a case may be after an activity, and the step if it is a deviation. No places: a new case."""
        near, rules = self._spread(places or self._begin), self._rules.transitions.values()
        if name in self._states:
            entered, step = self._states[name], (name, "")
            after = self._take(near, [one for one in rules if one.events]) & entered | (near - places) & entered
        else:
            taken, step = [one for one in rules if one.takes(name)], ("", name)
            entered = Places(end for one in taken for end in one.ends) & self.leaves
            after = self._take(near, taken)
        return (after, None) if after else (entered or places, (" | ".join(sorted(places or self._begin)), *step))

    def _take(self, places: Places, rules: Collection[Rule]) -> Places:
        """Return where these transitions lead from some leaves."""
        found: set[str] = set()
        for one in rules:
            if inside := {place for place in places if one.source in self._rules.around[place]}:
                found |= one.ends | (inside if one.inside is None else set())
        return Places(found) & self.leaves

    def _spread(self, places: Places) -> Places:
        """Add where a case may come by itself."""
        while more := self._take(places, self._silent) - places:
            places |= more
        return places
