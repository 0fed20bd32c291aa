"""What is entered by default: the ``initial`` of a state or machine, the ``target`` of a history state."""

from __future__ import annotations

from .actions import read_actions
from .model import Action, Start
from .path import quote
from .place import Place
from .scope import Scope
from .tree import Branch

_KINDS = ("shallow", "deep")


def read_initial(place: Place, scope: Scope) -> Start | None:
    """Of a compound state or the machine; None for a state that needs none."""
    branch = scope.source
    found = place.get("initial")
    if branch.kind == "parallel" and found is not None:
        found.error("SB119", '"initial" has no meaning here: all states inside a parallel state are entered')
        return None
    is_machine = branch.parent is None
    if found is None or (branch.kind != "compound" and not is_machine):
        if branch.kind == "compound" or (is_machine and branch.kind == "atomic"):
            place.report.add("SB106", place.below("initial"), '"initial" is missing', _first(branch))
        return None
    branches, actions = _read(found, scope)
    for one in branches:
        if not one.is_inside(branch):
            message = f"the state {quote(one.name)} is not inside {quote(branch.name)}"
            found.error("SB123", message, _inside(branch))
    return Start(tuple(one.name for one in branches), actions, found.path)


def read_history_default(place: Place, scope: Scope) -> Start:
    """Where a history state leads as long as there is nothing to remember: by default where its parent begins."""
    branch = scope.source
    _check_kind(place.get("history"))
    found, parent = place.get("target"), branch.parent
    assert parent is not None
    if parent.parent is None:
        hint = "the machine as a whole is never left, so there is nothing to remember"
        place.error("SB123", f"the history state {quote(branch.name)} stands in no other state", hint)
        return Start((), (), place.path)
    if found is None:
        return Start(_default_of(place, parent, branch, scope), (), place.path)
    branches, actions = _read(found, scope.within(parent))
    for one in branches:
        if one is branch or not one.is_inside(parent):
            message = f"the history state {quote(branch.name)} cannot lead to {quote(one.name)}"
            found.error("SB123", message, _inside(parent))
    return Start(tuple(one.name for one in branches), actions, found.path)


def _check_kind(place: Place | None) -> None:
    kind = place.text("shallow or deep") if place else None
    if place is not None and kind is not None and kind not in _KINDS:
        place.error("SB104", f"no kind of history {quote(kind)}", '"shallow" or "deep"')


def _default_of(place: Place, parent: Branch, branch: Branch, scope: Scope) -> tuple[str, ...]:
    regions = [child for child in parent.children.values() if child.kind != "history"]
    if parent.kind == "parallel":
        return tuple(child.name for child in regions)
    targets = _named(parent.body.get("initial"), parent, scope)
    if branch in targets:
        message = f"{quote(parent.name)} begins with this history state, which says nothing of where it leads at first"
        place.report.add("SB106", place.below("target"), message, 'write "target"')
        return ()
    return tuple(target.name for target in targets)


def _named(initial: object, parent: Branch, scope: Scope) -> list[Branch]:
    """The states an ``initial`` names; what is wrong with it is reported where it stands."""
    named = initial.get("target") if isinstance(initial, dict) else initial
    targets = named if isinstance(named, list) else [named]
    found = [scope.tree.find(target, parent, parent) for target in targets if isinstance(target, str)]
    return [branch for branch in found if branch is not None]


def _read(place: Place, scope: Scope) -> tuple[list[Branch], tuple[Action, ...]]:
    """Targets as ``initial`` and a history's ``target`` write them, and the actions on the way."""
    if not isinstance(place.value, dict):
        return scope.branches(place, inside=True), ()
    place.refuse_unknown(("target", "actions", "description", "meta"))
    target = place.get("target")
    if target is None:
        place.report.add("SB106", place.below("target"), '"target" is missing')
    return scope.branches(target, inside=True) if target else [], read_actions(place.get("actions"))


def _first(branch: Branch) -> str:
    first = next((key for key, child in branch.children.items() if child.kind != "history"), None)
    return f'write "initial": {quote(first)}' if first else ""


def _inside(branch: Branch) -> str:
    names = ", ".join(quote(child.name) for child in list(branch.children.values())[:5] if child.kind != "history")
    return f"there are: {names}" if names else "it holds no other states"
