"""Changes of a definition that are made in its diagram, as edits of its text: states and transitions are added,
renamed, moved, filled and deleted.

A change is made to the definition first; ``edits.rewrite`` finds the few places of the text that differ. The edited
text has to read as that definition exactly, without a new error: any other change is refused as a whole, before
anything is edited.
"""

import copy
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from machines.engine import limits
from machines.engine.definitions import render
from machines.engine.definitions.compiled import compile_definition
from machines.engine.definitions.scope import Branch, Tree

from .. import submissions
from ..submissions import Submission
from .drawing import Drawing, Move, Refused, follow, path_of
from .edits import GONE, UNIT, Edit, apply, fill_block, insert_lines, rewrite, write_member
from .places import Path, Place, Places, read_places
from .references import list_references, list_ways, rename_references

FIELDS = ("entry", "exit", "invoke", "after")  # of the form of a state


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


def change(text: str, format: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return ``edits`` of the text and ``breaks``, what they remove besides and what is warned of then; or ``refused``,
    and ``findings``. ``wanted``: ``do``, a key of ``OPERATIONS``, and what that asks. Offsets are those of Python."""
    found = submissions.read(text, format=format)
    if (
        found.definition is None
        or found.format not in ("json", "yaml")
        or not compile_definition(found.definition).runs
    ):
        return {"refused": "Correct the errors first: the diagram is that of an earlier text."}
    drawing = Drawing(copy.deepcopy(found.definition), Tree(found.name, found.definition))
    operation = OPERATIONS.get(str(wanted.get("do")))
    try:
        if operation is None:
            raise Refused("No such change.")
        shown = operation(drawing, wanted)
        return {"fields": shown} if shown is not None else _edit(text, found, drawing)
    except Refused as error:
        return {"refused": str(error)}


def _edit(text: str, found: Submission, drawing: Drawing) -> dict[str, Any]:
    edits: list[Edit] = []
    with suppress(KeyError, IndexError):  # a part without a place, such as one behind an anchor
        places = read_places(text, found.format)
        edits = rewrite(places, found.definition, drawing.definition, drawing.renamed)
        if drawing.move is not None:
            edits = relocate(places, found.definition, edits, drawing.move)
    after = submissions.read(apply(text, edits), format=found.format)
    if json.dumps(after.definition) != json.dumps(drawing.finish()):
        raise Refused("This cannot be written into the text without changing more of it: edit the text.")
    if len(after.errors) > len(found.errors):
        before = {finding.message for finding in found.errors}
        new = [finding for finding in after.errors if finding.message not in before]
        return {"refused": "The machine would be invalid.", "findings": [finding.as_dict() for finding in new]}
    known = {finding.message for finding in found.warnings}
    warned = [f"{one.code} {one.path}: {one.message}" for one in after.warnings if one.message not in known]
    return {"edits": edits, "breaks": drawing.breaks + warned}


def _check_name(drawing: Drawing, name: Any) -> str:
    if why := limits.check_state_name(name):
        raise Refused(f"The name {why}.")
    if name in drawing.tree.known:
        raise Refused(f"There is a state {name} already.")
    return str(name)


# ---- what can be done


def _add_state(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Add a state called ``name``; ``within``: the state around it, if any."""
    name = _check_name(drawing, wanted.get("name"))
    around = drawing.find(wanted["within"]) if wanted.get("within") else drawing.tree.top
    body = drawing.at(path_of(around))
    if not around.children and around.kind != "parallel":
        body.setdefault("initial", name)
    body.setdefault("states", {})[name] = {}


def _add_transition(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Add a transition from ``source`` to ``target``. ``event``: its name, or ``after`` and a duration."""
    source, target = drawing.find(wanted.get("source")), drawing.find(wanted.get("target"))
    event = str(wanted.get("event", "")).strip()
    if not event:
        raise Refused("A transition needs an event.")
    holder, key = ("after", event[6:].strip()) if event.startswith("after ") else ("on", event)
    found = drawing.at(path_of(source)).setdefault(holder, {})
    words = next(
        (one for one in list_ways(target) if drawing.tree.find(one, source, source.parent or source) is target), ""
    )
    others = found.get(key)
    found[key] = words if key not in found else [*others, words] if isinstance(others, list) else [others, words]


def _rename_state(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Call ``state`` by a new ``name``, in every target, ``In`` and event that names it."""
    state = drawing.find(wanted.get("state"))
    name = _check_name(drawing, wanted.get("name"))
    if state.explicit:
        drawing.put((*path_of(state), "id"), name)
    else:
        drawing.renamed[path_of(state)] = name
    old, new = drawing.tree, Tree(drawing.tree.machine, drawing.finish())
    spot = re.compile(rf"(?:(?<=[.#])|^)(?:{re.escape(state.name)}|{re.escape(state.key)})(?=\.|$)")

    def suggest(text: str) -> list[str]:
        return [text, *(text[: one.start()] + name + text[one.end() :] for one in spot.finditer(text))]

    became = dict(zip([old.top, *old.branches], [new.top, *new.branches], strict=True))
    rename_references(drawing, new, became, suggest)


def _move_state(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Move ``state`` into another one; ``within``: its name, or nothing for the machine itself."""
    state = drawing.find(wanted.get("state"))
    within = drawing.find(wanted["within"]) if wanted.get("within") else drawing.tree.top
    move_state(drawing, state, within)


def _delete_state(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Delete ``state`` with the states inside, and the transitions that lead to them."""
    state = drawing.find(wanted.get("state"))
    gone = {state, *state.below()}
    for one in list_references(drawing.tree):
        if one.found in gone and one.owner not in gone and one.transition and _is_there(drawing, one.transition):
            drawing.remove(one.transition)
            drawing.breaks.append(f"The transition {render(one.transition)} to {one.found.name} goes too.")
    around = state.parent
    if around is not None and around.parent is not None and len(around.children) == 1:
        drawing.remove((*path_of(around), "states"))
        if "initial" in around.body:
            drawing.remove((*path_of(around), "initial"))
    else:
        drawing.remove(path_of(state))


def _is_there(drawing: Drawing, path: Path) -> bool:
    try:
        return drawing.at(path) is not GONE
    except (KeyError, IndexError, TypeError):
        return False


def _delete_transition(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Delete the transition whose id is ``transition``."""
    path = compile_definition(drawing.definition).list_paths()[1].get(str(wanted.get("transition")))
    if path is None:
        raise Refused("There is no such transition.")
    drawing.remove(path)


def _read_fields(drawing: Drawing, wanted: dict[str, Any]) -> dict[str, str]:
    """Return what the form of ``state`` shows."""
    body = drawing.find(wanted.get("state")).body
    return {key: json.dumps(body[key], indent=2, ensure_ascii=False) if key in body else "" for key in FIELDS}


def _set_fields(drawing: Drawing, wanted: dict[str, Any]) -> None:
    """Fill ``state``. ``fields``: key -> JSON, empty for none."""
    path = path_of(drawing.find(wanted.get("state")))
    body = drawing.at(path)
    given = wanted.get("fields")
    for key, text in given.items() if isinstance(given, dict) else ():
        if key not in FIELDS:
            continue
        try:
            value = json.loads(text) if text.strip() else GONE
        except (ValueError, AttributeError, RecursionError) as error:
            raise Refused(f"{key} is not JSON: {error}.") from error
        if value is not GONE:
            body[key] = _align(body.get(key), value)
        elif key in body:
            drawing.remove((*path, key))


def _align(old: Any, new: Any) -> Any:
    """Return a new value with the keys of the old one, those that are no longer there as ``GONE``."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    kept = [key for key in old if key in new]
    if list(new)[: len(kept)] != kept:
        return new
    return {key: _align(old[key], new.get(key, GONE)) for key in old} | {key: new[key] for key in new if key not in old}


OPERATIONS: dict[str, Callable[[Drawing, dict[str, Any]], dict[str, str] | None]] = {
    "add-state": _add_state,
    "add-transition": _add_transition,
    "rename-state": _rename_state,
    "move-state": _move_state,
    "delete-state": _delete_state,
    "delete-transition": _delete_transition,
    "read-fields": _read_fields,
    "set-fields": _set_fields,
}
