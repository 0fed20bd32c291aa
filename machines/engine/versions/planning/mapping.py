"""Maps one version on another: states, histories, timers, invokes and data fields; and finds similar states. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from machines.engine.definitions import StateOutline
from machines.engine.versions.content import VersionContent

from .plan import SourcePlan, Suggestion

Targets = tuple[str, ...]


@dataclass
class Mapper:
    """Maps ``old`` on ``new``. ``explicit``: state of ``old`` by name -> states of ``new``, None for no place;
    ``reason``: what is said of these. ``data``: field of ``new`` -> expression."""

    old: VersionContent
    new: VersionContent
    explicit: Mapping[str, Targets | None]
    data: Mapping[str, Any] = field(default_factory=dict)
    reason: str = "given"
    loose: Mapping[str, str] = field(default_factory=dict)
    """Leaf of ``old`` in a region that ``new`` lacks -> the state around it: the other regions decide."""
    keeps_children: bool = False
    """Whether a child is matched by its machine, too: a plan stops it, since its parent knows it by the id."""

    def __post_init__(self) -> None:
        self.same = match_states(self.old, self.new)
        self.states: dict[str, Targets] = {}
        self.reasons: dict[str, str] = {}
        self.unmapped: list[str] = []

    def map(self, *, suggestions: bool = True) -> SourcePlan:
        """Return the part of a plan, without the way back."""
        for leaf in self.old.outline.leaves:
            self._map_leaf(leaf)
        fields = {name: name for name in self.new.fields if name in self.old.fields and name not in self.data}
        used = set(fields.values())
        taken = {target for targets in self.states.values() for target in targets}
        found = suggest(self.old, self.new, self.unmapped, taken, self.same) if suggestions and self.unmapped else []
        return SourcePlan(
            version=self.old.number,
            digest=self.old.digest,
            to=self.new.number,
            to_digest=self.new.digest,
            states=self.states,
            unmapped_states=tuple(self.unmapped),
            reasons=self.reasons,
            suggestions=tuple(found),
            data={name: value for name, value in self.data.items() if name in self.new.fields},
            fields=fields,
            added=tuple(name for name in self.new.fields if name not in fields and name not in self.data),
            removed=tuple(name for name in self.old.fields if name not in used),
            timers=self._map_timers(),
            invokes=self._map_invokes(),
            histories=self._map_histories(),
        )

    def _map_leaf(self, name: str) -> None:
        targets, why = self._find_place(name)
        if targets:
            self.states[name] = targets
        else:
            self.unmapped.append(name)
        if why:
            self.reasons[name] = why

    def _find_place(self, name: str) -> tuple[Targets | None, str]:
        """Return the place of a leaf, and why: its own that was given, by name, by path, that of a state around it."""
        if name in self.explicit:
            return self.explicit[name], self.reason
        around = self._find_given_around(name)
        if around is not None and self.explicit[around] is None:
            return None, f"{self.reason} for {around}"
        state = self.old.outline.state(name)
        same = find_same(self.old, self.new, state) if state else None
        if same is not None:
            return (same[0],), same[1]
        if around is not None:
            return self.explicit[around], f"{self.reason} for {around}"
        if name in self.loose:
            return (self.loose[name],), "its region has no place: the state around it"
        return None, ""

    def _find_given_around(self, name: str) -> str | None:
        lineage = self.old.outline.lineage(name)[1:]
        return next((state.name for state in lineage if state.name in self.explicit), None)

    def _find_counterparts(self, state: StateOutline) -> Targets:
        """Return the states of the new version that stand for a state of any kind."""
        if state.is_leaf:
            if self.states.get(state.name) == (self.loose.get(state.name),):
                return ()
            return self.states.get(state.name, ())
        if state.name in self.explicit:
            return self.explicit[state.name] or ()
        return (self.same[state.name],) if state.name in self.same else ()

    def _map_histories(self) -> dict[str, str]:
        found = {}
        for state in self.old.outline.states:
            if state.type != "history":
                continue
            given = self.explicit.get(state.name, (self.same[state.name],) if state.name in self.same else None)
            target = self.new.outline.state(given[0]) if given else None
            if target is not None and target.type == "history":
                found[state.name] = target.name
        return found

    def _map_timers(self) -> dict[str, tuple[str, str]]:
        """Match timers by the place of their state and the same delay, in order."""
        found: dict[str, tuple[str, str]] = {}
        for state in self.old.outline.states:
            timers = self.old.list_timers(state.name)
            if not timers:
                continue
            known = [timer for name in self._list_near(state) for timer in self.new.list_timers(name)]
            for timer in timers:
                same = next((other for other in known if other.delay == timer.delay), None)
                if same is not None:
                    known.remove(same)
                    found[timer.event] = (same.event, same.state)
        return found

    def _list_near(self, state: StateOutline) -> list[str]:
        """List the counterparts of a state, then the states inside that are entered with them."""
        targets = [name for name in self._find_counterparts(state) if name in self.new.programs]
        if not targets:
            return []
        active = self.new.enter(targets).active
        inside = [
            name for name in self.new.names
            if name in active and any(around.name in targets for around in self.new.outline.lineage(name)[1:])
        ]  # fmt: skip
        return list(dict.fromkeys([*targets, *inside]))

    def _map_invokes(self) -> dict[str, str]:
        """Match invokes by id and work, else by the same work in the place of their state."""
        found: dict[str, str] = {}
        waiting = []
        for state in self.old.outline.states:
            active = self._list_active(state) if state.invokes else frozenset()
            for invoke in self.old.list_invokes(state.name):
                same = self.new.invokes.get(invoke.id)
                if same is not None and same.work == invoke.work and same.state in active:
                    found[invoke.id] = same.id
                elif self.keeps_children or not invoke.work.startswith("machine "):
                    waiting.append((state, invoke))
        for state, invoke in waiting:
            known = [one for name in self._list_near(state) for one in self.new.list_invokes(name)]
            taken = set(found.values())
            other = next((one for one in known if one.work == invoke.work and one.id not in taken), None)
            if other is not None:
                found[invoke.id] = other.id
        return found

    def _list_active(self, state: StateOutline) -> frozenset[str]:
        """List the states of the new version that can be active for an instance in a state of the old one."""
        active: set[str] = set()
        for leaf in self.old.outline.leaves_of(state.name):
            targets = [name for name in self.states.get(leaf, ()) if name in self.new.programs]
            active |= self.new.enter(targets).active if targets else set()
        return frozenset(active)


def map_version(
    old: VersionContent,
    new: VersionContent,
    explicit: Mapping[str, Targets | None],
    data: Mapping[str, Any],
    *,
    keeps_removed: bool = False,
) -> SourcePlan:
    """Map one version on another, and the way back. ``explicit`` has names of ``old`` and of ``new`` only.

    ``keeps_removed``: values that the move replaces are kept beside the data; the way back takes them from there.
    """
    there = Mapper(old, new, explicit, data).map()
    loose = find_regions_around(new, old)
    mapper = Mapper(new, old, invert_states(old, new, there), reason="the way back", loose=loose)
    back = mapper.map(suggestions=False)
    fields = {name: of for name, of in back.fields.items() if not (keeps_removed and name in there.removed)}
    added = tuple(name for name in old.fields if name not in fields)
    histories = {to: of for of, to in there.histories.items()}
    return replace(there, back=replace(back, fields=fields, added=added, histories=histories))


def invert_states(old: VersionContent, new: VersionContent, there: SourcePlan) -> dict[str, Targets | None]:
    """Return state of ``new`` -> state of ``old`` for every place that a leaf has: the same name, else the first leaf
    in document order. A compound place stands for its leaves."""
    found: dict[str, Targets | None] = {}
    exact: dict[str, list[str]] = {}
    entered: dict[str, list[str]] = {}
    for leaf in old.outline.leaves:
        for target in there.states.get(leaf, ()):
            state = new.outline.state(target)
            if state is None:
                continue
            kind = exact if state.is_leaf else entered
            for name in new.outline.leaves_of(target):
                kind.setdefault(name, []).append(leaf)
    for name in new.outline.leaves:
        leaves = exact.get(name) or entered.get(name)
        if leaves:
            found[name] = (name,) if name in leaves else (leaves[0],)
    return found


def find_regions_around(old: VersionContent, new: VersionContent) -> dict[str, str]:
    """Return leaf of ``old`` -> the nearest state of ``new`` around it, for leaves of regions that ``new`` lacks."""
    same = match_states(old, new)
    found = {}
    for leaf in old.outline.leaves:
        lineage = old.outline.lineage(leaf)
        for inner, around in pairwise(lineage):
            if inner.name in same:
                break
            if around.type == "parallel" and around.name in same:
                found[leaf] = same[around.name]
                break
    return found


LEAST_SCORE = 0.35
MOST_SUGGESTIONS = 3  # for one state
MOST_COMPARISONS = 60_000  # pairs of states: more would take seconds
TAKEN = 0.6  # factor for a state that is the counterpart of another one already
ALIKE = 0.5  # the share from which it is said that two states are alike in something
KINDS = {
    "name": (0.35, "similar name"),
    "out": (0.2, "takes the same events"),
    "targets": (0.1, "leads to the same states"),
    "in": (0.1, "is entered by the same events"),
    "invokes": (0.15, "invokes the same"),
    "position": (0.1, "stands in the same place"),
}
"""What states are compared by -> its weight, and what is said where they are alike in it."""
NAMED = ("out", "in", "invokes")  # of these it is said what both have
OF_STATES = ("targets", "position")  # these name states
Features = Mapping[str, frozenset[str]]
"""A set for each of KINDS."""


def find_same(old: VersionContent, new: VersionContent, state: StateOutline) -> tuple[str, str] | None:
    """Return the state of ``new`` with the same name, else with the same path, and which of both. History states and
    other states are never counterparts."""
    by_name = new.outline.state(state.name)
    if by_name is not None and _is_history(by_name) == _is_history(state):
        moved = by_name.path != state.path and state.path and by_name.path
        return by_name.name, f"same name; was {state.path}, is {by_name.path}" if moved else "same name"
    by_path = new.paths.get(state.path)
    if by_path is not None and _is_history(by_path) == _is_history(state) and old.outline.state(by_path.name) is None:
        return by_path.name, f"same path: {by_path.path}"
    return None


def match_states(old: VersionContent, new: VersionContent) -> dict[str, str]:
    """Return state of ``old`` -> its counterpart in ``new`` by name or path, for all kinds of states."""
    found = ((state.name, find_same(old, new, state)) for state in old.outline.states)
    return {name: same[0] for name, same in found if same is not None}


def _is_history(state: StateOutline) -> bool:
    return state.type == "history"


def describe_states(version: VersionContent, names: Collection[str]) -> dict[str, Features]:
    """Describe states, by name, for a comparison by similarity."""
    entries: dict[str, set[str]] = {}
    for state in version.outline.states:
        for transition in state.transitions:
            for target in transition.targets:
                entries.setdefault(target, set()).update(transition.events or (transition.cause,))
    return {state.name: _describe(version, state, entries) for state in version.outline.states if state.name in names}


def _describe(version: VersionContent, state: StateOutline, entries: dict[str, set[str]]) -> Features:
    parent = version.outline.state(state.parent) if state.parent else None
    siblings = parent.children if parent else [one.name for one in version.outline.states if one.parent is None]
    at = list(siblings).index(state.name)
    words = {event for t in state.transitions for event in t.events if t.cause == "on"}
    return {
        "name": _split(state.name),
        "out": frozenset(words | {f"after {t.delay}" for t in state.transitions if t.delay}),
        "targets": frozenset(target for t in state.transitions for target in t.targets),
        "in": frozenset(one for one in entries.get(state.name, ()) if not one.startswith("after.")),
        "invokes": frozenset(one.work for one in version.list_invokes(state.name)),
        "position": frozenset([state.parent or "", f"{at} before", f"{len(siblings) - at} from here"]),
    }


def _split(name: str) -> frozenset[str]:
    """Return the pairs of neighbouring letters of a name, without case and signs."""
    plain = re.sub(r"[^a-z0-9]+", "", name.rpartition(".")[2].lower()) or name
    return frozenset(plain[at : at + 2] for at in range(max(1, len(plain) - 1)))


def suggest(
    old: VersionContent, new: VersionContent, wanted: Collection[str], taken: Collection[str], same: dict[str, str]
) -> list[Suggestion]:
    """List the leaves of ``new`` that are similar to the ``wanted`` leaves of ``old``, the best first for each.

    ``taken``: states of ``new`` that are counterparts already; ``same``: counterparts by name, for targets and parents.
    """
    ours, theirs = describe_states(old, set(wanted)), describe_states(new, set(new.outline.leaves))
    ends = [{state.name for state in version.outline.states if state.type == "final"} for version in (old, new)]
    found: list[Suggestion] = []
    for name in list(ours)[: max(1, MOST_COMPARISONS // max(1, len(theirs)))]:
        fitting = [other for other in theirs if (name in ends[0]) == (other in ends[1])]
        scored = [(other, *compare(ours[name], theirs[other], same)) for other in fitting]
        rows = [(name, other, round(s * (TAKEN if other in taken else 1), 2), why) for other, s, why in scored]
        rows = sorted((row for row in rows if row[2] >= LEAST_SCORE), key=lambda row: -row[2])
        found += rows[:MOST_SUGGESTIONS]
    return found


def compare(one: Features, other: Features, same: Mapping[str, str]) -> tuple[float, str]:
    """Return how similar two states are, from 0 to 1, and why. What neither of them has does not count."""
    shares: dict[str, float] = {}
    for kind in KINDS:
        ours = {same.get(name, name) for name in one[kind]} if kind in OF_STATES else one[kind]
        if ours or other[kind]:
            shares[kind] = 2 * len(ours & other[kind]) / (len(ours) + len(other[kind]))
    score = sum(KINDS[kind][0] * share for kind, share in shares.items()) / sum(KINDS[kind][0] for kind in shares)
    why = []
    for kind in (kind for kind, share in shares.items() if share >= ALIKE):
        both = f": {', '.join(sorted(one[kind] & other[kind])[:4])}" if kind in NAMED else ""
        why.append(f"{KINDS[kind][1]}{both}")
    return score, "; ".join(why) or "little in common"
