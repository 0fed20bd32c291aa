"""Maps one version on another: states, histories, timers, invokes and data fields. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from machines.engine.definitions import StateOutline
from machines.engine.versions.content import VersionContent

from .matching import find_same, match_states, suggest
from .plan import SourcePlan

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
                elif not invoke.work.startswith("machine "):  # a child is known to its parent by the id
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
