"""Pairs of versions: a random chart, and what random edits make of it."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from machines.engine.definitions import compile_definition

Body = dict[str, Any]
MOST_EDITS = 4


def edit(definition: Body, seed: int) -> Body:
    """Return a definition that one to four random edits make of this one; it can be published. Edits that lead to
    errors are left out."""
    editor = _Editor(random.Random(seed))
    wanted = editor.random.randint(1, MOST_EDITS)
    made, edits = definition, 0
    for _ in range(10 * wanted):
        changed = editor.edit(copy.deepcopy(made))
        if changed is not None and changed != made and not compile_definition(changed).has_errors:
            made, edits = changed, edits + 1
        if edits == wanted:
            break
    return made


def walk(body: Body) -> Iterator[tuple[str, Body, Body]]:
    """Yield name, state and parent of all states."""
    for name, state in body.get("states", {}).items():
        yield name, state, body
        yield from walk(state)


def is_compound(state: Body) -> bool:
    return bool(state.get("states")) and state.get("type") not in ("parallel", "history")


class _Editor:
    def __init__(self, source: random.Random) -> None:
        self.random, self.names = source, 0

    def edit(self, definition: Body) -> Body | None:
        kinds: list[Callable[[Body], Body | None]] = [
            self.rename, self.rename, self.remove, self.add, self.group, self.ungroup, self.turn, self.retime,
            self.retime, self.rework, self.rework, self.change_data,
        ]  # fmt: skip
        return self.random.choice(kinds)(definition)

    def name(self) -> str:
        self.names += 1
        return f"N{self.names}{self.random.randint(0, 99)}"

    def state(self, definition: Body, fits: Callable[[Body], bool] = lambda state: True) -> Any:
        found = [each for each in walk(definition) if fits(each[1])]
        return self.random.choice(found) if found else None

    def rename(self, definition: Body) -> Body | None:
        return _replace(definition, self.state(definition)[0], self.name())

    def remove(self, definition: Body) -> Body | None:
        """Remove a leaf; what led to it leads to a sibling."""
        found = self.state(definition, lambda state: not state.get("states") and state.get("type") != "history")
        if found is None:
            return None
        name, _, parent = found
        others = [
            other for other, state in parent["states"].items() if other != name and state.get("type") != "history"
        ]
        if not others:
            return None
        del parent["states"][name]
        return _replace(definition, name, self.random.choice(others))

    def add(self, definition: Body) -> Body | None:
        """Add a state, and a transition to it."""
        found = self.state(definition, is_compound)
        parent, name = (found[1] if found else definition), self.name()
        back = self.random.choice([*parent["states"]])
        parent["states"][name] = {"on": {"a": f"#{back}"}, "after": {"1234": f"#{back}"}}
        source = parent["states"][back]
        if source.get("type") not in ("final", "history"):
            source.setdefault("on", {}).setdefault("new", []).append({"target": f"#{name}"})
        return definition

    def group(self, definition: Body) -> Body | None:
        """Put a state into a new compound one."""
        found = self.state(definition, lambda state: state.get("type") not in ("history", "final"))
        if found is None:
            return None
        name, state, parent = found
        parent["states"] = {
            (group if other == name else other): (
                {"initial": f"#{name}", "states": {name: state}} if other == name else one
            )
            for group in [self.name()]
            for other, one in parent["states"].items()
        }
        return definition

    def ungroup(self, definition: Body) -> Body | None:
        """Replace a compound state by its children."""
        found = self.state(definition, is_compound)
        if found is None or found[2].get("type") == "parallel":
            return None
        name, state, parent = found
        first = next(iter(state["states"]))
        del parent["states"][name]
        parent["states"] |= state["states"]
        return _replace(definition, name, first)

    def turn(self, definition: Body) -> Body | None:
        """Make a compound state parallel, or back."""
        found = self.state(definition, lambda state: bool(state.get("states")))
        if found is None:
            return None
        state = found[1]
        if state.get("type") == "parallel":
            del state["type"]
            state["initial"] = f"#{next(iter(state['states']))}"
        else:
            state.pop("initial", None)
            state["type"] = "parallel"
        return definition

    def retime(self, definition: Body) -> Body | None:
        """Change, drop or add a timer."""
        found = self.state(definition, lambda state: state.get("type") not in ("history", "final"))
        if found is None:
            return None
        name, state, _ = found
        timers = state.setdefault("after", {})
        if timers and self.random.random() < 0.7:
            delay = self.random.choice([*timers])
            held = timers.pop(delay)
            if self.random.random() < 0.6:
                timers[str(int(delay) + self.random.choice([500, 10_000]))] = held
        else:
            timers[str(1500 + self.random.randint(0, 99))] = f"#{name}"
        if not timers:
            del state["after"]
        return definition

    def rework(self, definition: Body) -> Body | None:
        """Add, drop, or name an invoke otherwise, or give it another handler."""
        found = self.state(definition, lambda state: state.get("type") not in ("history", "final"))
        if found is None:
            return None
        _, state, _ = found
        invoke = state.get("invoke")
        if not invoke:
            state["invoke"] = {"src": "work", "retry": {"attempts": 1}}
            return definition
        match self.random.choice(["drop", "rename", "other"]):
            case "drop":
                del state["invoke"]
            case "rename":
                invoke["id"] = f"i{self.random.randint(1, 9)}"
            case _:
                invoke["src"] = "other"
        return definition

    def change_data(self, definition: Body) -> Body | None:
        fields = definition["context"]["properties"]
        match self.random.choice(["add", "number", "text", "drop"]):
            case "add":
                fields[f"f{self.random.randint(1, 9)}"] = self.random.choice(
                    [{"type": "integer", "default": 7}, {"type": "string"}, {}]
                )
            case "number":
                fields["n"] = {"type": "number", "default": 0}
            case "text":
                fields["zero"] = {"type": ["string", "integer"], "default": 0}
            case _:
                fields.pop(self.random.choice([*fields]))
        return definition


def _replace(definition: Body, old: str, new: str) -> Body:
    """Replace a name wherever it stands as a word."""
    return json.loads(re.sub(rf"\b{re.escape(old)}\b", new, json.dumps(definition)))  # type: ignore[no-any-return]
