"""What names a state: targets, ``In``, properties, and the names of events. Each follows a state that gets another name
or another place."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions.reading.transitions import make_default_id
from machines.engine.definitions.scope import Branch, Tree

from .drawing import Drawing, follow, path_of
from .places import Path

_IN = re.compile(r"""\bIn\(\s*(["'])(.*?)\1\s*\)""")
_APART = ("machines", "meta", "description")  # keys whose texts name no state of this machine


@dataclass(frozen=True, slots=True)
class Reference:
    """A target. ``source`` and ``near``: whence its name is resolved; ``found``: the state that it names;
    ``transition``: the path of the transition that has it, empty for what is entered by default."""

    path: Path
    text: str
    owner: Branch
    source: Branch
    near: Branch
    found: Branch | None
    transition: Path = ()


def list_references(tree: Tree) -> Iterator[Reference]:
    for branch in [tree.top, *tree.branches]:
        path, body = path_of(branch), branch.body
        around = branch.parent or branch
        starts = [("initial", branch)] + ([("target", around)] if branch.kind == "history" else [])
        for key, source in starts:
            value, below = body.get(key), (*path, key)
            if isinstance(value, dict):
                value, below = value.get("target"), (*below, "target")
            for at, text in _list_texts(value, below):
                yield Reference(at, text, branch, source, source, tree.find(text, source, source))
        for at in _list_transitions(body, path):
            value = follow(tree.top.body, at)
            target, below = (value.get("target"), (*at, "target")) if isinstance(value, dict) else (value, at)
            for spot, text in _list_texts(target, below):
                yield Reference(spot, text, branch, branch, around, tree.find(text, branch, around), at)


def _list_transitions(body: dict[str, Any], path: Path) -> Iterator[Path]:
    """List the paths of the transitions of a state."""
    for key in ("on", "after"):
        for name in body[key] if isinstance(body.get(key), dict) else ():
            yield from _list_items(body[key][name], (*path, key, name))
    holders = [(body, path)]
    for below in _list_items(body.get("invoke"), ("invoke",)):
        holders.append((follow(body, below), (*path, *below)))
    for holder, below in holders:
        for key in ("always", "onDone", "onError"):
            if isinstance(holder, dict) and key in holder:
                yield from _list_items(holder[key], (*below, key))


def _list_items(value: Any, path: Path) -> list[Path]:
    """List one or many: the paths of the items of a list; of anything else its own."""
    return [(*path, at) for at in range(len(value))] if isinstance(value, list) else [path] if value is not None else []


def _list_texts(value: Any, path: Path) -> list[tuple[Path, str]]:
    found = [(path, value)] if not isinstance(value, list) else [((*path, at), one) for at, one in enumerate(value)]
    return [(at, one) for at, one in found if isinstance(one, str)]


def rename_references(
    drawing: Drawing, tree: Tree, became: Mapping[Branch, Branch], suggest: Callable[[str], list[str]]
) -> list[tuple[Path, str, str]]:
    """Make every target, ``In``, property and event name the state that it named before. ``tree``: that
    after the change. ``became``: a state -> that state in it. ``suggest``: what a target may be called then, best
    first. Return the targets that changed: path, text before, text now."""
    changed = []
    for one in list_references(drawing.tree):
        if one.found is None:
            continue
        meant, owner = became[one.found], became[one.owner]
        around = owner.parent or owner
        source = owner if one.source is one.owner else around
        near = source if one.near is one.source else around
        ways = [*suggest(one.text), *list_ways(meant)]
        text = next((each for each in ways if tree.find(each, source, near) is meant), one.text)
        if text != one.text:
            drawing.put(one.path, text)
            changed.append((one.path, one.text, text))
    names = {branch.name: became[branch].name for branch in drawing.tree.branches}
    _rename_words(drawing, (), names, _map_events(drawing, became))
    return changed


def list_ways(branch: Branch) -> list[str]:
    """List what a target may call a state, shortest first."""
    return [branch.key, branch.name, f"#{branch.name}"]


def _map_events(drawing: Drawing, became: Mapping[Branch, Branch]) -> dict[str, str]:
    """Return the events that the name of a state is part of -> those after the change. The end of an invoke has that
    name unless the invoke has an ``id``."""
    events: dict[str, str] = {}
    for branch in drawing.tree.branches:
        old, new = branch.word, became[branch].word
        events[f"done.state.{old}"] = f"done.state.{new}"
        invokes = _list_items(branch.body.get("invoke"), ("invoke",))
        for number, path in enumerate(invokes, start=1):
            if not follow(branch.body, path).get("id"):
                ids = [make_default_id(word, number if len(invokes) > 1 else 0) for word in (old, new)]
                events |= {start + ids[0]: start + ids[1] for start in ("done.invoke.", "error.invoke.")}
    return events


def _rename_words(drawing: Drawing, path: Path, names: dict[str, str], events: dict[str, str]) -> None:
    """Rename states in expressions, in properties, and in the names of events."""
    value = drawing.at(path)
    children = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(children):
        if key not in _APART or (path and path[-1] == "states"):
            _rename_words(drawing, (*path, key), names, events)
    if isinstance(value, str):
        words = names.get(value, value) if path[0] == "properties" else value
        words = _IN.sub(lambda spot: f"In({spot[1]}{names.get(spot[2], spot[2])}{spot[1]})", words)
        if words != value:
            drawing.put(path, words)
    event = str(path[-1]) if path[-2:-1] == ("on",) else ""
    if events.get(event, event) != event:
        drawing.renamed[path] = events[event]
