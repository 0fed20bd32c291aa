"""Holds a log from elsewhere against a definition: which of its steps does the definition not have?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from machines.engine.definitions import outline
from machines.engine.definitions.outline import is_match

from .discovery import read_traces
from .errors import BadSearch
from .records import Conformance, Deviation, Extent
from .rules import Rules, find_ends

SENT = re.compile(r"\b(?:raise|send) ([\w.-]+)")
Places = frozenset[str]  # leaves where a case may be: a log does not tell how guards decided


def check_log(text: str, definition: Mapping[str, Any], version: int, *, most: int = 100) -> Conformance:
    """Answer which steps of a log a definition does not have. An activity is the state of its name or description, as
    in a draft, which the step enters; otherwise an event. Timers, results of jobs and raised events may come between
    two activities; activities in parentheses, steps of the engine itself, stay unchecked. Raises BadLog, and BadSearch
    for a definition with parallel states."""
    traces = read_traces(text)
    follow = _Replay(definition).follow
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], str] = {}
    fitting = unchecked = 0
    for case, trace in traces.items():
        places, fits = Places(), True
        for one in trace:
            if one.name.startswith("("):
                unchecked += 1
                continue
            places, wrong = follow(places, one.name)
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
    def __init__(self, definition: Mapping[str, Any]) -> None:
        found, self._rules = outline(definition), Rules.of(definition)
        if any(state.type == "parallel" for state in found.states):
            raise BadSearch("a log does not tell the states of parallel regions, which this definition has")
        self._leaves = Places(found.leaves)
        named = [(one.description, one.name) for one in found.states] + [(one.name, one.name) for one in found.states]
        self._states = {name: Places(found.leaves_of(state)) for name, state in named if name}
        taken = [one for state in found.states for one in state.transitions]
        lists = [*(one.actions for one in taken), *(one.entry + one.exit for one in found.states)]
        sent = {name for actions in lists for text in actions for name in SENT.findall(text)}
        self._own = [one.events for one in taken if one.cause != "on"] + [(name,) for name in sent]
        self._begin = Places(find_ends(found, (found.initial,))) & self._leaves
        self.follow = cache(self._follow)

    def _follow(self, places: Places, name: str) -> tuple[Places, tuple[str, str, str] | None]:
        """Return where a case may be after an activity, and the step if it is a deviation. No places: a new case."""
        near = self._spread(places or self._begin)
        if name in self._states:
            entered = self._states[name]
            every = {event for one in self._rules.transitions.values() for event in one.events}
            after = self._take(near, every) & entered | (near - places) & entered
            step = (name, "")
        else:
            entered = Places(end for one in self._rules.transitions.values() for end in one.ends
                             if any(is_match(event, name) for event in one.events)) & self._leaves  # fmt: skip
            after, step = self._take(near, {name}), ("", name)
        return (after, None) if after else (entered or places, (" | ".join(sorted(places or self._begin)), *step))

    def _take(self, places: Places, events: set[str]) -> Places:
        return Places(
            target for target in self._leaves
            if any(self._rules.allows(source, target, event) for source in places for event in events)
        )  # fmt: skip

    def _spread(self, places: Places) -> Places:
        """Add where a case may come by itself."""
        own = {event for events in self._own for event in events}
        while more := self._take(places, own) - places:
            places |= more
        return places
