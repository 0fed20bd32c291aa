"""Moves of a state into another one: what changes its meaning by that, and the edits that carry its text there, with
its comments, at the margin of its new place."""

from __future__ import annotations

import copy
from typing import Any

from machines.engine.definitions import render
from machines.engine.definitions.scope import Branch, Tree

from .drawing import Drawing, Move, Refused, follow, path_of
from .edits import GONE, UNIT, Edit, apply, fill_block, insert_lines, rewrite, write_member
from .places import Place, Places
from .references import rename_references


def move_state(drawing: Drawing, state: Branch, within: Branch) -> None:
    """Give a state another place, and list what that changes. Raises Refused."""
    if within is state or within.is_inside(state):
        raise Refused(f"{state.name} cannot be moved into itself.")
    if within is state.parent:
        raise Refused(f"{state.name} is in {within.name} already.")
    if state.key in within.children:
        raise Refused(f"There is a state {state.key} in {within.name} already: rename one of them first.")
    begins = not within.children and within.kind != "parallel" and "initial" not in within.body
    drawing.move = Move(path_of(state), path_of(within), begins)
    tree = Tree(drawing.tree.machine, drawing.finish())
    became = _match(drawing.tree, tree, state, within)
    changed = rename_references(drawing, tree, became, lambda text: [text])
    drawing.breaks += [f"{render(path)}: the target {before} becomes {now}." for path, before, now in changed]
    drawing.breaks += _list_inherited(state, within)


def _match(old: Tree, new: Tree, state: Branch, within: Branch) -> dict[Branch, Branch]:
    """Return each state -> that state after the move."""
    found = {branch.keys: branch for branch in new.branches}
    became = {old.top: new.top}
    for branch in old.branches:
        is_moved = branch is state or branch.is_inside(state)
        keys = (*within.keys, *branch.keys[len(state.keys) - 1 :]) if is_moved else branch.keys
        if keys not in found:
            raise Refused(f"The states inside of {within.name} would be too deep.")
        became[branch] = found[keys]
    return became


def _list_inherited(state: Branch, within: Branch) -> list[str]:
    """List the transitions of states around that hold in the state no longer, and those that do now."""
    before, after = state.ancestors(), [within, *within.ancestors()]
    lines = []
    for around, words in [
        *((one, "no longer") for one in before if one not in after),
        *((one, "also") for one in after if one not in before),
    ]:
        names = [name for key in ("on", "after") if isinstance(around.body.get(key), dict) for name in around.body[key]]
        names += ["always"] if "always" in around.body else []
        if names:
            lines.append(f"Transitions of {around.name} {words} hold in {state.name}: {', '.join(names)}.")
    if within.kind == "parallel":
        lines.append(f"{within.name} is parallel: {state.name} is active whenever {within.name} is.")
    return lines


# ---- the text


def relocate(places: Places, definition: dict[str, Any], edits: list[Edit], move: Move) -> list[Edit]:
    """Return edits, and those that carry the text of a state to its new place with what they change in it."""
    leaving = copy.deepcopy(definition)
    for path in move.leave(definition):
        follow(leaving, path[:-1])[path[-1]] = GONE
    removed = rewrite(places, definition, leaving, {})
    start, end = _cut(places, places.found[move.source])
    inner = [(one[0] - start, one[1] - start, one[2]) for one in edits if start <= one[0] and one[1] <= end]
    outer = [one for one in edits if not any(gone[0] <= one[0] and one[1] <= gone[1] for gone in removed)]
    margin = places.margin(places.found[move.source].whole[0])
    first, *rest = apply(places.text[start:end], inner).strip().split("\n")
    lines = [first, *(line.removeprefix(margin) for line in rest)]
    return sorted([*outer, *removed, _insert(places, move, lines)], key=lambda edit: edit[:2])


def _cut(places: Places, place: Place) -> tuple[int, int]:
    """Return the range of a member with its comments: those above it in a block, and that at its end."""
    start, end = place.whole
    around = places.found[place.path[:-1]]
    if around.inline:
        return start, end
    before = [one for one in places.children(around.path) if one.whole[0] < start]
    if before:
        start = places.end_of_line(before[-1].whole[1])
    return start, places.end_of_line(end)


def _insert(places: Places, move: Move, lines: list[str]) -> Edit:
    within, states = places.found[move.within], places.found.get((*move.within, "states"))
    is_block = not places.found[move.source[:-1]].inline
    around = states if states is not None and places.children(states.path) else within
    is_empty = not places.children(around.path)
    if around.inline and is_block and not is_empty:
        raise Refused("The text around the new place is written in braces: edit the text.")
    if around is states:
        return insert_lines(places, around, [lines], last=True)
    inline = around.inline and not is_block
    members = [[write_member("initial", move.key, inline=inline)]] if move.begins else []
    if not inline:
        members.append(["states:", *(UNIT + line if line else line for line in lines)])
    elif len(lines) == 1:
        members.append([f'"states": {{{lines[0]}}}'])
    else:
        members.append(['"states": {', *(UNIT + line for line in lines), "}"])
    return (
        fill_block(places, around, members)
        if is_block and is_empty
        else insert_lines(places, around, members, last=True)
    )
