"""Reads the states of a definition, and what is entered by default: ``initial`` of a compound state or the machine,
and ``target`` of a history state."""

from collections.abc import Iterator

from machines.engine import limits
from machines.engine.definitions.durations import read_duration
from machines.engine.definitions.findings import quote
from machines.engine.definitions.model import Action, Start, State, Value
from machines.engine.definitions.place import Place, list_keys, read_checked, require_key
from machines.engine.definitions.scope import KINDS, Branch, Scope
from machines.engine.definitions.values import read_value

from .actions import read_actions
from .transitions import read_after_transitions, read_invokes, read_on, read_transitions

_KINDS = ("shallow", "deep")


def read_initial(place: Place, scope: Scope) -> Start | None:
    """Read the ``initial`` of a compound state or the machine; None for a state that needs none."""
    branch = scope.source
    found = place.part("initial")
    if branch.kind == "parallel" and "initial" in place:
        found.error("SB119", '"initial" has no meaning here: all states inside a parallel state are entered')
        return None
    is_machine = branch.parent is None
    if "initial" not in place or (branch.kind != "compound" and not is_machine):
        if branch.kind == "compound" or (is_machine and branch.kind == "atomic"):
            place.report.add("SB106", place.below("initial"), '"initial" is missing', _first(branch))
        return None
    branches, actions = _read(found, scope)
    for one in branches:
        if not one.is_inside(branch):
            message = f"the state {quote(one.name)} is not inside {quote(branch.name)}"
            found.error("SB123", message, _hint_at_children(branch))
    return Start(tuple(one.name for one in branches), actions, found.path)


def read_history_default(place: Place, scope: Scope) -> Start:
    """Read the default of a history state; without one, where its parent begins."""
    branch = scope.source
    _check_kind(place.part("history"))
    found, parent = place.part("target"), branch.parent
    assert parent is not None
    if parent.parent is None:
        hint = "the machine as a whole is never left, so there is nothing to remember"
        place.error("SB123", f"the history state {quote(branch.name)} stands in no other state", hint)
        return Start((), (), place.path)
    if "target" not in place:
        return Start(_default_of(place, parent, branch, scope), (), place.path)
    branches, actions = _read(found, scope.within(parent))
    for one in branches:
        if one is branch or not one.is_inside(parent):
            message = f"the history state {quote(branch.name)} cannot lead to {quote(one.name)}"
            found.error("SB123", message, _hint_at_children(parent))
    return Start(tuple(one.name for one in branches), actions, found.path)


def _check_kind(place: Place) -> None:
    kind = place.text("shallow or deep")
    if kind is not None and kind not in _KINDS:
        place.error("SB104", f"no kind of history {quote(kind)}", '"shallow" or "deep"')


def _default_of(place: Place, parent: Branch, branch: Branch, scope: Scope) -> tuple[str, ...]:
    regions = [child for child in parent.children.values() if child.kind != "history"]
    if parent.kind == "parallel":
        return tuple(child.name for child in regions)
    targets = _find_initial(parent.body.get("initial"), parent, scope)
    if branch in targets:
        message = f"{quote(parent.name)} begins with this history state, which says nothing of where it leads at first"
        place.report.add("SB106", place.below("target"), message, 'write "target"')
        return ()
    return tuple(target.name for target in targets)


def _find_initial(initial: object, parent: Branch, scope: Scope) -> list[Branch]:
    """Return the states an ``initial`` names; problems are reported."""
    named = initial.get("target") if isinstance(initial, dict) else initial
    targets = named if isinstance(named, list) else [named]
    found = [scope.tree.find(target, parent, parent) for target in targets if isinstance(target, str)]
    return [branch for branch in found if branch is not None]


def _read(place: Place, scope: Scope) -> tuple[list[Branch], tuple[Action, ...]]:
    """Read the targets of ``initial`` or of a history's ``target``, and the actions on the way."""
    if not isinstance(place.value, dict):
        return scope.branches(place, inside=True), ()
    place.refuse_unknown(("target", "actions", "description", "meta"))
    return scope.branches(require_key(place, "target"), inside=True), read_actions(place.part("actions"))


def _first(branch: Branch) -> str:
    first = next((key for key, child in branch.children.items() if child.kind != "history"), None)
    return f'write "initial": {quote(first)}' if first else ""


def _hint_at_children(branch: Branch) -> str:
    names = ", ".join(quote(child.name) for child in list(branch.children.values())[:5] if child.kind != "history")
    return f"there are: {names}" if names else "it holds no other states"


_DOES = ("on", "always", "after", "entry", "exit", "invoke")
MACHINE_KEYS = ("type", "on", "always", "after", "entry", "exit", "invoke")  # the machine may behave like a state
_HINTS = {
    "onEntry": 'write "entry"',
    "onExit": 'write "exit"',
    "final": 'write "type": "final"',
    "parallel": 'write "type": "parallel"',
    "events": 'write "on"',
    "data": 'write "output"',
    "delay": 'write "after"',
    "deadline": 'write "sla"',
}
_BELONGS = {
    "onDone": ("an invoke, or to a state with states inside", 'write it inside "invoke"'),
    "onError": ("an invoke", 'write it inside "invoke"'),
    "initial": ("a state with states inside", ""),
    "history": ("a history state", 'write "type": "history"'),
    "target": ("a transition or a history state", 'write it under "on", or "type": "history"'),
    "output": ("a final state or the machine", 'write "type": "final"'),
    "sla": ("a state that instances rest in and leave again", "give it to a state inside"),
}


def read_states(place: Place, scope: Scope) -> Iterator[State]:
    """Read the states under the source of the scope, each followed by those inside it."""
    if not place.is_object("an object of states"):
        return
    if not place.value:
        place.error("SB106", "the definition has no states" if place.path == ("states",) else "there are no states")
    if len(scope.source.keys) >= limits.MAX_STATE_DEPTH and place.value:
        place.error("SB111", f"states inside states more than {limits.MAX_STATE_DEPTH} levels deep")
        return
    for key, below in place.items():
        yield from _read_state(below, scope.within(scope.source.children[key]))


def read_root(place: Place, scope: Scope) -> State:
    """Read the machine itself as a state; its key ``output`` is not that of a state."""
    return _state(place, scope, read_initial(place, scope), None, root=True)


def _read_state(place: Place, scope: Scope) -> Iterator[State]:
    branch = scope.source
    _check_names(place, branch, scope)
    if place.is_object("a state", "write {} for a state without anything"):
        _check_keys(place, branch)
    _check_type(place.part("type"), branch)
    start = read_history_default(place, scope) if branch.kind == "history" else read_initial(place, scope)
    output = place.part("output")
    yield _state(place, scope, start, read_value(output) if "output" in place and branch.kind == "final" else None)
    yield from read_states(place.part("states"), scope)


def _state(place: Place, scope: Scope, start: Start | None, output: Value | None, root: bool = False) -> State:
    branch = scope.source
    on = read_on(place.part("on"), scope)
    invokes, finished = read_invokes(place.part("invoke"), scope)
    ended = read_transitions(place.part("onDone"), "state done", (f"done.state.{branch.word}",), scope)
    timed = read_after_transitions(place.part("after"), scope)
    return State(
        name=branch.name,
        index=0,
        kind=branch.kind,
        description=place.part("description").text() or "",
        tags=() if root else _read_tags(place.part("tags")),
        entry=read_actions(place.part("entry")),
        exit=read_actions(place.part("exit")),
        transitions=on + finished + ended + timed,
        always=read_transitions(place.part("always"), "always", (), scope),
        invokes=invokes,
        path=place.path,
        word=branch.word,
        keys=branch.keys,
        parent=branch.parent.name if branch.parent and branch.parent.parent else None,
        children=tuple(child.name for child in branch.children.values()),
        start=start,
        deep=branch.kind == "history" and branch.body.get("history") == "deep",
        output=output,
        root=root,
        sla=read_duration(place.part("sla"), 0, 1, limits.MAX_DELAY) if branch.kind == "atomic" else 0,
    )


def _check_names(place: Place, branch: Branch, scope: Scope) -> None:
    if scope.tree.names[branch.name] is not branch:
        place.error("SB115", f"another state is called {quote(branch.name)} too", 'give one of them another "id"')
    if (why := limits.check_state_name(branch.key)) is not None:
        place.error("SB107", f"the state name {quote(branch.key)} {why}")
    elif branch.generated and (why := limits.check_state_name(branch.name)) is not None:
        place.error("SB107", f"the state name {quote(branch.name)} {why}", 'give the state an "id"')
    read_checked(place.part("id"), "id", "an id", limits.check_state_name)


def _check_keys(place: Place, branch: Branch) -> None:
    allowed = _list_allowed_keys(branch)
    if branch.kind == "history":
        for key in (*_DOES, "states"):
            if key in place:
                message = f'"{key}" has no meaning here: a history state is never active itself'
                place.at(key).error("SB119", message)
    for key, (owner, hint) in _BELONGS.items():
        if key in place and key not in allowed:
            place.at(key).error("SB119", f'"{key}" belongs to {owner}, not to this one', hint)
    place.refuse_unknown((*list_keys("state"), "onError"), _HINTS)


def _list_allowed_keys(branch: Branch) -> tuple[str, ...]:
    """Return the keys that this kind of state may have beside the common ones."""
    meant = {
        "atomic": ("sla",),
        "compound": ("initial", "onDone"),
        "parallel": ("initial", "onDone"),  # an initial is refused where it is read, with a better reason
        "final": ("output",),
        "history": ("history", "target"),
    }
    return meant.get(branch.kind, ())


def _check_type(place: Place, branch: Branch) -> None:
    kind = place.text("a type")
    if kind is None:
        return
    if kind not in KINDS:
        hint = 'one of "final", "parallel", "history", or leave it out'
        place.error("SB104", f"no type of state {quote(kind)}", hint)
    elif kind in ("compound", "parallel") and not branch.children:
        place.error("SB106", f'a {kind} state needs "states"')
    elif kind == "atomic" and branch.children:
        place.error("SB104", "an atomic state has no states inside", 'leave "type" out')
    elif kind == "final" and branch.parent and branch.parent.kind == "parallel":
        place.error("SB104", "a state inside a parallel state cannot be final itself", "put a final state inside it")


def _read_tags(place: Place) -> tuple[str, ...]:
    return tuple(tag.value for tag in place.one_or_many() if tag.text("a tag") is not None)
