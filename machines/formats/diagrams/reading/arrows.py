"""Arrows as transitions: by an event, after a time, when work or the states inside are done, or at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machines.engine.definitions.report import quote
from machines.formats.conditions import Complain, Conditions
from machines.formats.messages import event_name
from machines.formats.report import Report

from . import labels
from .actions import read_action
from .chart import Link, Node
from .labels import Label
from .lines import Line

EVENT = "to."  # an arrow without a label: an event that is named after its target
DONE, ERROR = "done", "error"


def is_choice(links: Sequence[Link], *, choosing: bool = True) -> bool:
    """Return whether the arrows from one point form a choice: at most one of them has no condition."""
    return sum(not labels.read(link.label, choosing=choosing).guard for link in links) <= 1


class Arrows:
    """Writes transitions into states. ``ends``: the arrows to an end inside each state; ``out``: those out of it."""

    def __init__(
        self,
        names: dict[Node, str],
        conditions: Conditions,
        report: Report,
        *,
        ends: dict[Node, list[Link]],
        out: dict[Node, list[Link]],
    ) -> None:
        self._names = names
        self._conditions = conditions
        self._report = report
        self._ends = ends
        self._out = out

    def _complain(self, line: Line) -> Complain:
        return lambda code, text, hint: self._report.add(code, line.place, text, hint)

    def add(self, state: dict[str, Any], node: Node, links: list[Link]) -> None:
        """Add all arrows that leave a state. Those with a condition come before those without."""
        choosing = node.kind == "choice" and is_choice(links)
        read = [(link, labels.read(link.label, choosing=choosing)) for link in links]
        for link, label in sorted(read, key=lambda pair: not pair[1].guard):
            self._add(state, node, link, label, choosing=choosing)
        for home in (state["on"], state["after"]):
            for key, found in home.items():
                home[key] = found[0] if len(found) == 1 else found
        for key in ("always", "onDone"):
            if len(state.get(key, ())) == 1:
                state[key] = state[key][0]

    def add_internal(self, state: dict[str, Any], text: str, line: Line) -> None:
        """Add ``event [guard] / action`` inside a state: no state is left or entered."""
        label = labels.read(text)
        transition = self._transition(label, line)
        if label.delay:
            state["after"].setdefault(label.delay, []).append(transition)
        for event in label.events:
            state["on"].setdefault(event_name(event, self._complain(line)), []).append(transition)

    def _add(self, state: dict[str, Any], node: Node, link: Link, label: Label, *, choosing: bool) -> None:
        targets = self._targets(link)
        transition = {"target": targets[0] if len(targets) == 1 else targets, **self._transition(label, link.line)}
        if link.target is node or (link.target is not None and node in link.target.ancestors()):
            transition["reenter"] = True
        written: Any = transition if len(transition) > 1 or len(targets) != 1 else targets[0]
        if choosing:
            if label.events or label.delay:
                message = f"an arrow out of a choice has no event: that of {quote(link.label)} is left out"
                self._report.add("SB221", link.line.place, message)
            state.setdefault("always", []).append(written)
        elif label.delay:
            state["after"].setdefault(label.delay, []).append(written)
        elif not self._completes(state, node, label, written):
            for event in label.events or (self._name_event(link),):
                state["on"].setdefault(event_name(event, self._complain(link.line)), []).append(written)

    def _completes(self, state: dict[str, Any], node: Node, label: Label, written: Any) -> bool:
        """Add an arrow that waits for no event and return True; return False for any other arrow.

        Such an arrow is taken when the state is done, or when a condition holds.
        """
        invoke = state.get("invoke")
        ends = self._has_ends(node)
        if label.events == (ERROR,) and isinstance(invoke, dict):
            _append(invoke, "onError", written)
        elif label.events not in ((), (DONE,)):
            return False
        elif isinstance(invoke, dict):
            _append(invoke, "onDone", written)
        elif ends:
            state.setdefault("onDone", []).append(written)
        elif label.guard and not label.events:
            state.setdefault("always", []).append(written)
        else:
            return False
        return True

    def _has_ends(self, node: Node) -> bool:
        if node.is_parallel:
            return all(self._has_ends(child) for child in node.children if not child.is_history)
        return node in self._ends

    def _name_event(self, link: Link) -> str:
        assert link.target is not None
        name = EVENT + "_".join(self._names.get(link.target, link.target.id).replace("*", "_").split())
        message = f"the arrow has no event; it is now {quote(name)}"
        self._report.add("SB224", link.line.place, message, "write what happens after a colon: A --> B : event")
        return name

    def _targets(self, link: Link) -> list[str]:
        assert link.target is not None
        if link.target.kind == "fork":
            branches = [branch.target for branch in self._out.get(link.target, ())]
            return [self._names[branch] for branch in branches if branch in self._names]
        return [self._names.get(link.target, link.target.id)]

    def _transition(self, label: Label, line: Line) -> dict[str, Any]:
        complain = self._complain(line)
        transition: dict[str, Any] = {}
        if label.guard:
            transition["guard"] = self._conditions.read(label.guard, complain)
        actions = [read_action(action, self._conditions, complain) for action in label.actions]
        if actions:
            transition["actions"] = actions[0] if len(actions) == 1 else actions
        return transition


def _append(home: dict[str, Any], key: str, transition: Any) -> None:
    found = home.get(key)
    home[key] = transition if found is None else [*(found if isinstance(found, list) else [found]), transition]
