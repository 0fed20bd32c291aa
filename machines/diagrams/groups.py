"""Groups the states of a large flat machine by the first word of their names, so that they can be folded."""

import re
from dataclasses import replace

from machines.engine.definitions import Outline, StateOutline

GROUP = "group"
"""The type of a state that stands for a group: it is drawn, and no instance is in it but in its states."""

LEAST_STATES = 25  # of a machine that is too large to be read at once
LEAST_MEMBERS = 3
WORDS = re.compile(r"[^\W_]+?(?=[A-Z][a-z]|[\W_]|$)")


def group_by_prefix(outline: Outline) -> Outline | None:
    """Return the outline with states around those whose names begin with the same word: ``payment *``.

    Words that all names begin with are passed over. None for a machine that is small or has states in states, and
    where fewer than half of its states are in groups, or all in one.
    """
    names = [state.name for state in outline.states]
    if len(names) < LEAST_STATES or any(state.parent or state.children for state in outline.states):
        return None
    words = [WORDS.findall(name) for name in names]
    while len({row[0].casefold() if row else "" for row in words}) == 1 and words[0]:
        words = [row[1:] for row in words]
    members: dict[str, list[str]] = {}
    for name, row in zip(names, words, strict=True):
        if row:
            members.setdefault(row[0].casefold(), []).append(name)
    members = {f"{word} *": found for word, found in members.items() if len(found) >= LEAST_MEMBERS}
    if len(members) < 2 or 2 * sum(map(len, members.values())) < len(names) or not members.keys().isdisjoint(names):
        return None
    parents = {name: group for group, found in members.items() for name in found}
    first = max(state.index for state in outline.states) + 1
    groups = (_make_group(name, first + place, members[name]) for place, name in enumerate(members))
    moved = (replace(s, parent=parents[s.name], depth=1) if s.name in parents else s for s in outline.states)
    return replace(outline, states=(*groups, *moved))


def _make_group(name: str, index: int, members: list[str]) -> StateOutline:
    return StateOutline(
        name, index, GROUP, "states whose names begin alike", (), (), (), (), (), path=name, children=tuple(members)
    )
