"""Moves to other versions in histories: which states stand for each other by the plans that moved instances."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from machines.engine.connection.replies import decode_entry

MIGRATE, PLAN = "(migrate)", "plan:"
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
