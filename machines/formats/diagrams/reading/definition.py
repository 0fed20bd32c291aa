"""Turns a chart of states and arrows into a definition."""

from __future__ import annotations

from typing import Any

from machines.engine import limits
from machines.engine.definitions.report import quote
from machines.formats.conditions import Complain, Conditions
from machines.formats.messages import handler_name
from machines.formats.report import Report

from . import labels
from .actions import read_action
from .arrows import Arrows, is_choice
from .chart import Chart, Link, Node
from .lines import Line

END, START = "End", "Start"


class Definition:
    """Builds the definition of one chart."""

    def __init__(self, chart: Chart, report: Report) -> None:
        self._chart = chart
        self._report = report
        self._conditions = Conditions()
        self._names: dict[Node, str] = {}
        self._taken: set[str] = set()
        self._out: dict[Node, list[Link]] = {}
        self._starts: dict[Node, list[Link]] = {}
        self._ends: dict[Node, list[Link]] = {}
        self._final: set[Node] = set()

    def build(self, id: str) -> dict[str, Any]:
        self._sort_links()
        self._end_states()
        self._name(self._chart.root)
        self._arrows = Arrows(self._names, self._conditions, self._report, ends=self._ends, out=self._out)
        body = self._inside(self._chart.root)
        context = {"context": self._conditions.fields} if self._conditions.fields else {}
        return {"id": id, **context, **body}

    def _complain(self, line: Line) -> Complain:
        return lambda code, text, hint: self._report.add(code, line.place, text, hint)

    # -- preparing the chart -----------------------------------------------------------------------

    def _sort_links(self) -> None:
        for link in self._chart.links:
            if link.source is None:
                self._starts.setdefault(link.home, []).append(link)
            else:
                self._out.setdefault(link.source, []).append(link)

    def _end_states(self) -> None:
        """Find the final states.

        A state with only an arrow to an end is final itself. Other arrows to an end lead to a new final state.
        """
        ends: dict[Node, Node] = {}
        for link in self._chart.links:
            if link.target is not None or link.source is None:
                continue
            if self._is_final(link.source, link):
                self._final.add(link.source)
                self._ends.setdefault(link.home, []).append(link)
                continue
            if link.home not in ends:
                ends[link.home] = Node(END, link.line, link.home)
                link.home.children.append(ends[link.home])
                self._final.add(ends[link.home])
            link.target = ends[link.home]
            self._ends.setdefault(link.home, []).append(link)

    def _is_final(self, node: Node, link: Link) -> bool:
        plain = not node.kind and not node.children and node.parent is link.home
        first = [start.target for start in self._starts.get(link.home, ())]
        idle = not any(labels.read_state_line(text).word in ("do", "event") for _, text in node.texts)
        return plain and idle and not link.label and self._out.get(node) == [link] and node not in first

    def _name(self, around: Node) -> None:
        """Give each state a unique name: the label's first line if that is valid, else the id."""
        for node in [below for below in _walk(around) if below is not around]:
            lines = labels.lines_of(node.label)
            wanted = [*lines[:1], node.id]
            name = next((found for one in wanted if (found := _state_name(one)) and found not in self._taken), "")
            number = 2
            while not name or name in self._taken:
                name, number = f"{_state_name(node.id)[: limits.MAX_STATE_NAME - 8] or 'state'} {number}", number + 1
            self._taken.add(name)
            self._names[node] = name
            node.texts[:0] = [(node.line, line) for line in (lines[1:] if lines and lines[0] == name else lines)]

    # -- states ------------------------------------------------------------------------------------

    def _inside(self, node: Node) -> dict[str, Any]:
        """Return the states inside a state, and its initial state."""
        if not node.children:
            return {}
        states = {self._names[child]: self._state(child) for child in node.children}
        if node.is_parallel:
            return {"type": "parallel", "states": states}
        initial, extra = self._initial(node)
        return {"initial": initial, "states": {**states, **extra}}

    def _state(self, node: Node) -> dict[str, Any]:
        if node.is_history:
            return self._history(node)
        state = self._texts(node)
        if node in self._final:
            kept = {key: state[key] for key in ("description", "entry", "exit") if key in state}
            return {"type": "final", **kept}
        if not node.children:
            for link in self._starts.get(node, ()):
                self._start(node, link)  # reports that it leads elsewhere
        inside = self._inside(node)
        if "type" in inside:
            state["type"] = inside.pop("type")
        self._arrows.add(state, node, self._out.get(node, []))
        order = ("description", "type", "initial", "entry", "exit", "invoke", "on", "after", "always", "onDone")
        whole = state | inside
        return {key: whole[key] for key in (*order, "states") if whole.get(key) not in (None, {}, [], "")}

    def _history(self, node: Node) -> dict[str, Any]:
        state: dict[str, Any] = {"type": "history"} | ({"history": "deep"} if node.kind == "deep" else {})
        targets = [self._names[link.target] for link in self._out.get(node, []) if link.target in self._names]
        return state | ({"target": targets[0] if len(targets) == 1 else targets} if targets else {})

    def _texts(self, node: Node) -> dict[str, Any]:
        state: dict[str, Any] = {"on": {}, "after": {}}
        described = []
        for line, raw in node.texts:
            for text in labels.lines_of(raw):
                found = labels.read_state_line(text)
                complain = self._complain(line)
                if found.word in ("entry", "exit"):
                    actions = labels.read(f"/ {found.text}").actions
                    state.setdefault(found.word, []).extend(
                        read_action(action, self._conditions, complain) for action in actions
                    )
                elif found.word == "do":
                    state.setdefault("invoke", []).append({"src": handler_name(found.text, complain)})
                elif found.word == "event":
                    self._arrows.add_internal(state, found.text, line)
                else:
                    described.append(text)
        for note in node.notes:
            described += labels.lines_of(note.replace("\n", "<br>"))
        if described:
            state["description"] = "\n".join(described)
        for key in ("entry", "exit", "invoke"):
            if len(state.get(key, ())) == 1:
                state[key] = state[key][0]
        return state

    # -- starts ------------------------------------------------------------------------------------

    def _initial(self, node: Node) -> tuple[Any, dict[str, Any]]:
        starts = self._starts.get(node, [])
        if not starts:
            return self._default(node), {}
        if len(starts) == 1:
            return self._start(node, starts[0]), {}
        name, number = START, 2
        while name in self._taken:
            name, number = f"{START} {number}", number + 1
        self._taken.add(name)
        begin = Node(START, starts[0].line, node)
        begin.kind = "choice" if is_choice(starts, choosing=False) else ""
        self._names[begin] = name
        state: dict[str, Any] = {"on": {}, "after": {}}
        self._arrows.add(state, begin, starts)
        if not begin.kind:
            message = f"{len(starts)} starts; the machine waits in the state {quote(name)} for what each is called"
            self._report.add("SB224", starts[0].line.place, message)
        return name, {name: {key: value for key, value in state.items() if value}}

    def _start(self, node: Node, link: Link) -> Any:
        label = labels.read(link.label)
        if label.events or label.guard or label.delay:
            message = f"a start has no event and no condition: {quote(link.label)} is left out"
            self._report.add("SB221", link.line.place, message)
        assert link.target is not None
        path = [at for at in link.target.ancestors() if at is node or node in at.ancestors()]
        if node not in path or link.target is node:
            message = f"a start leads to {quote(link.target.id)}, which is not inside"
            self._report.add("SB123", link.line.place, message, "draw the start in the state around its target")
            return self._names[link.target]
        target = ".".join(self._names[at] for at in reversed(path[: path.index(node)]))
        actions = [read_action(action, self._conditions, self._complain(link.line)) for action in label.actions]
        return {"target": target, "actions": actions} if actions else target

    def _default(self, node: Node) -> str:
        """Choose the initial state where none is marked: the first state that no arrow leads to."""
        reached = {link.target for link in self._chart.links if link.source is not link.target}
        states = [child for child in node.children if not child.is_history and child not in self._final]
        states = states or [child for child in node.children if not child.is_history] or node.children
        first = next((child for child in states if child not in reached), states[0])
        where = f"the state {quote(self._names[node])}" if node in self._names else "the diagram"
        message = f"{where} has no start; it begins with {quote(self._names[first])}"
        self._report.add("SB224", first.line.place, message, f"write: [*] --> {first.id}")
        return self._names[first]


def _walk(node: Node) -> list[Node]:
    """Return the state and all states in it, outer states first."""
    found = [node]
    for at in found:
        found += at.children
    return found


def _state_name(text: str) -> str:
    """Return a text as a valid state name. Dots separate the names of a path, so a name cannot contain one."""
    name = "".join(character if character.isprintable() else " " for character in text).replace(".", "_")
    name = " ".join(name.split()).lstrip("#")[: limits.MAX_STATE_NAME].strip()
    return name if limits.check_state_name(name) is None else ""
