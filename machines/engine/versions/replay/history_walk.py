"""Walks over the instances of a machine, each once, and reads their histories and the moves between versions in
them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import MIGRATE, Status, build_error, decode_entry, read_pairs
from machines.engine.publishing.catalog import Catalog

PAGE = 200  # instances of one page: sb_find returns their data, too


@dataclass(frozen=True, slots=True)
class WalkedInstance:
    """An instance on the walk. ``parent``: the JSON of the instance that invoked it, or ""."""

    root: str
    id: str
    parent: str


@dataclass(frozen=True, slots=True)
class History:
    """All steps that are kept of an instance, as JSON texts, oldest first. ``latest``: the version that it has now;
    ``moves``: those that are kept between versions."""

    root: str
    id: str
    parent: str
    entries: Sequence[str]
    latest: int
    moves: tuple[RecordedMove, ...]

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the versions that took the steps, oldest first, as far as the moves between them are kept."""
        return (*(move.source for move in self.moves), self.latest)

    @property
    def is_whole(self) -> bool:
        """Tell whether it begins with the creation."""
        return bool(decode_entry(self.entries[0])[2] == "(create)")


class HistoryWalk:
    """Reads the instances of a machine and their histories. Raises EngineUnavailable, UnknownMachine."""

    def __init__(self, caller: Caller, catalog: Catalog, machine: str) -> None:
        self._caller, self._catalog, self._machine = caller, catalog, machine
        metas = [partition.meta for partition in catalog.partitions(machine)]
        answers = caller.commands_available([(meta, ("HGETALL", meta)) for meta in metas])
        self._plans = read_plans(meta for meta in answers if isinstance(meta, dict))

    def find(self, sample: int | None) -> Iterator[WalkedInstance]:
        """Yield each instance once; with a ``sample``, so many, spread over partitions and states, both those that have
        been there longest and the newest."""
        roots = [partition.root for partition in self._catalog.partitions(self._machine)]
        states = self._catalog.states(self._machine)
        orders = ("0",) if sample is None else ("0", "1")
        size = PAGE if sample is None else max(1, min(PAGE, sample))
        places = [self._walk(root, state, order, size) for order in orders for state in states for root in roots]
        seen: set[str] = set()
        for found in _take_turns(places) if sample is not None else (one for place in places for one in place):
            if found.id not in seen:
                seen.add(found.id)
                yield found
                if len(seen) == sample:
                    return

    def _walk(self, root: str, state: str, order: str, size: int) -> Iterator[WalkedInstance]:
        """Yield the instances in one state of one partition. One that is in several states is found in the first."""
        score = id = ""
        while True:
            reply = self._caller.call("sb_find", root, state, size, score, id, "", order, "", size)
            if reply[0] != Status.OK:
                raise build_error(self._machine, "", reply)
            for name, _, fields in zip(reply[3::3], reply[4::3], reply[5::3], strict=True):
                raw = read_pairs(fields)
                if raw.get("_state", state).split("\n")[0] == state:
                    yield WalkedInstance(root, str(name), raw.get("_parent", ""))
            score, id = str(reply[1]), str(reply[2])
            if not id:
                return

    def read(self, found: Sequence[WalkedInstance]) -> list[History]:
        """Read the histories of these instances in one round trip; those deleted meanwhile are left out, and those
        without any recorded step."""
        answers = self._caller.many([("sb_history", one.root, (one.id, 0, -1)) for one in found])
        histories = []
        for one, answer in zip(found, answers, strict=True):
            if isinstance(answer, Exception):
                translate(answer)
            if answer[0] == Status.OK and len(answer) > 3:
                entries = answer[3:]
                latest = int(answer[2].partition(":")[0])
                histories.append(
                    History(one.root, one.id, one.parent, entries, latest, read_moves(entries, self._plans))
                )
        return histories


def _take_turns(places: Sequence[Iterator[Any]]) -> Iterator[Any]:
    """Yield one of each place in turn."""
    waiting = list(places)
    while waiting:
        left = []
        for place in waiting:
            try:
                yield next(place)
            except StopIteration:
                continue
            left.append(place)
        waiting = left


PLAN = "plan:"
Places = dict[str, tuple[str, ...]]
Plans = Mapping[tuple[str, int, int], Places]
"""Id of a plan, version before and after -> leaf -> what stands for it, where that has another name."""


@dataclass(frozen=True, slots=True)
class RecordedMove:
    """One move. ``states``: leaf of the version before -> what stands for it, where that has another name."""

    source: int
    target: int
    states: Places


def read_plans(metas: Iterable[Mapping[str, str]]) -> Plans:
    """Read what the partitions have recorded of plans."""
    found: dict[tuple[str, int, int], Places] = {}
    for name, text in (item for meta in metas for item in meta.items() if item[0].startswith(PLAN)):
        _, plan, to = name.split(":")
        for version, states in json.loads(text).items():
            found[plan, int(version), int(to)] = {leaf: tuple(names) for leaf, names in states.items()}
    return found


def read_moves(entries: Sequence[str], plans: Plans) -> tuple[RecordedMove, ...]:
    """Read the moves of a history, JSON texts, oldest first. A plan that is not recorded here, because an earlier
    release moved by it or the machine was imported, is known by what it did with this instance."""
    found = []
    for at, text in enumerate(entries):
        if MIGRATE not in text or (entry := decode_entry(text))[2] != MIGRATE or not isinstance(entry[7], dict):
            continue
        if {"from", "to"} <= entry[7].keys():
            source, target = int(entry[7]["from"]), int(entry[7]["to"])
            states = plans.get((str(entry[7].get("plan")), source, target))
            if states is None:
                states = _compare_leaves(_read_leaves(decode_entry(entries[at - 1])) if at else (), _read_leaves(entry))
            found.append(RecordedMove(source, target, states))
    return tuple(found)


def _compare_leaves(before: tuple[str, ...], after: tuple[str, ...]) -> Places:
    """Return what stands for leaves that were active. Several that were renamed together correspond in the order of the
    document; where their numbers differ, nothing is known."""
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if len(gone) == 1 and new:
        return {gone[0]: tuple(new)}
    if len(new) == 1:
        return dict.fromkeys(gone, (new[0],))
    return {name: (other,) for name, other in zip(gone, new, strict=False)} if len(gone) == len(new) else {}


def _read_leaves(entry: Sequence[object]) -> tuple[str, ...]:
    names = entry[3]
    return tuple(map(str, names)) if isinstance(names, list) else (str(names),)


def map_states(
    moves: Sequence[RecordedMove], number: int | None, facts: Mapping[str, object], names: Collection[str]
) -> dict[int, Places]:
    """Return version -> leaf -> the states of the replayed version that stand for it, as far as moves tell.

    A move towards the replayed version, ``number``, counts before a state of the same name there (``names``); a move
    away from it only where there is none. Names in ``facts`` are left out: the caller says what stands for them.
    """
    found: dict[int, Places] = {}

    def find(version: int, leaf: str) -> tuple[str, ...]:
        if version == number:
            return (leaf,)
        return found.get(version, {}).get(leaf) or ((leaf,) if leaf in names else ())

    for move in reversed(moves):
        for leaf, after in move.states.items():
            is_recorded = move.target == number or any(name in found.get(move.target, {}) for name in after)
            place = tuple(dict.fromkeys(state for name in after for state in find(move.target, name)))
            if place and leaf not in facts and move.source != number and (is_recorded or leaf not in names):
                found.setdefault(move.source, {}).setdefault(leaf, place)
    for move in moves:
        for leaf, after in move.states.items():
            for name in after:
                place = find(move.source, leaf)
                if place and name not in facts and not find(move.target, name):
                    found.setdefault(move.target, {})[name] = place
    return found
