"""Reads a diagram: its statements become a chart of states and arrows, and the chart a definition."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, quote
from machines.formats.conditions import Complain, Conditions, event_name, handler_name, machine_name, message_of
from machines.formats.diagrams import statements
from machines.formats.text import Names, Report, shorten_transitions, single, stem

from .chart import Builder, Chart, Link, Node, resolve_forks
from .statements import Label, Line, parse

END, START = "End", "Start"
_HEAD = re.compile(r"^\s*(?:```+\s*\w+\s*)?stateDiagram", re.MULTILINE)
_VERB = re.compile(r"(?P<verb>raise|emit)\s+(?P<name>[^\s()]+)")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z]\w*)\s*:?=(?!=)\s*(?P<value>.+)")
NAMELESS = "machine"
DONE, ERROR = "done", "error"
EVENT = "to."  # an arrow without a label: an event that is named after its target


def read(text: str, base: str | Path | None = None) -> tuple[Any, list[Finding]]:
    """Return the definition and all findings. Next to an error, the definition is a draft to continue from."""
    report = Report()
    source = statements.read_lines(text, report)
    chart = Builder(report).build(parse(source, report))
    broken = any(one.is_error for one in report.findings)
    if not broken and not _HEAD.search(text):
        report.add("SB131", "", "no state diagram of Mermaid", "the first line is: stateDiagram-v2")
    elif not broken and not chart.root.children:
        report.add("SB131", "", "no states in this Mermaid diagram", "write: [*] --> first")
    found = report.findings
    if not chart.root.children or any(one.code in ("SB111", "SB131") for one in found):
        return None, found
    resolve_forks(chart, report)
    name = machine_name(source.title) or stem(base)
    if not name:
        report.add("SB223", "id", "the diagram has no title", f"it is {NAMELESS!r} until you name it")
    return Definition(chart, report).build(name or NAMELESS), report.findings


class Definition:
    """Builds the definition of one chart."""

    def __init__(self, chart: Chart, report: Report) -> None:
        self._chart = chart
        self._report = report
        self._conditions = Conditions()
        self._names: dict[Node, str] = {}
        self._taken = Names()
        self._out: dict[Node, list[Link]] = {}
        self._starts: dict[Node, list[Link]] = {}
        self._ends: dict[Node, list[Link]] = {}
        self._final: set[Node] = set()

    def build(self, id: str) -> dict[str, Any]:
        self._sort_links()
        self._end_states()
        self._name(self._chart.root)
        body = self._read_inside(self._chart.root)
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
        idle = not any(statements.read_state_line(text).word in ("do", "event") for _, text in node.texts)
        return plain and idle and not link.label and self._out.get(node) == [link] and node not in first

    def _name(self, around: Node) -> None:
        """Give each state a unique name: the label's first line if that is valid, else the id."""
        for node in [below for below in _walk(around) if below is not around]:
            lines = statements.lines_of(node.label)
            wanted = [found for one in (*lines[:1], node.id) if (found := _state_name(one))]
            free = [one for one in wanted if one not in self._taken]
            stem = wanted[-1][: limits.MAX_STATE_NAME - 8] if wanted else "state"
            self._names[node] = name = self._taken.take(free[0] if free else stem, " ")
            node.texts[:0] = [(node.line, line) for line in (lines[1:] if lines and lines[0] == name else lines)]

    # -- states ------------------------------------------------------------------------------------

    def _read_inside(self, node: Node) -> dict[str, Any]:
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
        inside = self._read_inside(node)
        if "type" in inside:
            state["type"] = inside.pop("type")
        self._add_links(state, node, self._out.get(node, []))
        order = ("description", "type", "initial", "entry", "exit", "invoke", "on", "after", "always", "onDone")
        whole = state | inside
        return {key: whole[key] for key in (*order, "states") if whole.get(key) not in (None, {}, [], "")}

    def _history(self, node: Node) -> dict[str, Any]:
        state: dict[str, Any] = {"type": "history"} | ({"history": "deep"} if node.kind == "deep" else {})
        targets = [self._names[link.target] for link in self._out.get(node, []) if link.target in self._names]
        return state | ({"target": single(targets)} if targets else {})

    def _texts(self, node: Node) -> dict[str, Any]:
        state: dict[str, Any] = {"on": {}, "after": {}}
        described = []
        for line, raw in node.texts:
            for text in statements.lines_of(raw):
                found = statements.read_state_line(text)
                if found.word in ("entry", "exit"):
                    label = statements.read_label(f"/ {found.text}")
                    state.setdefault(found.word, []).extend(self._actions(label, line))
                elif found.word == "do":
                    state.setdefault("invoke", []).append({"src": handler_name(found.text, self._complain(line))})
                elif found.word == "event":
                    self._add_internal(state, found.text, line)
                else:
                    described.append(text)
        for note in node.notes:
            described += statements.lines_of(note.replace("\n", "<br>"))
        if described:
            state["description"] = "\n".join(described)
        return state | {key: single(state[key]) for key in ("entry", "exit", "invoke") if key in state}

    # -- starts ------------------------------------------------------------------------------------

    def _initial(self, node: Node) -> tuple[Any, dict[str, Any]]:
        starts = self._starts.get(node, [])
        if not starts:
            return self._default(node), {}
        if len(starts) == 1:
            return self._start(node, starts[0]), {}
        name = self._taken.take(START, " ")
        begin = Node(START, starts[0].line, node)
        begin.kind = "choice" if is_choice(starts, choosing=False) else ""
        self._names[begin] = name
        state: dict[str, Any] = {"on": {}, "after": {}}
        self._add_links(state, begin, starts)
        if not begin.kind:
            message = f"{len(starts)} starts; the machine waits in the state {quote(name)} for what each is called"
            self._report.add("SB224", starts[0].line.place, message)
        return name, {name: {key: value for key, value in state.items() if value}}

    def _start(self, node: Node, link: Link) -> Any:
        label = statements.read_label(link.label)
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
        actions = self._actions(label, link.line)
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

    # -- arrows ------------------------------------------------------------------------------------

    def _add_links(self, state: dict[str, Any], node: Node, links: list[Link]) -> None:
        """Add all arrows that leave a state. Those with a condition come before those without."""
        choosing = node.kind == "choice" and is_choice(links)
        read = [(link, statements.read_label(link.label, choosing=choosing)) for link in links]
        for link, label in sorted(read, key=lambda pair: not pair[1].guard):
            self._add_link(state, node, link, label, choosing=choosing)
        shorten_transitions(state)

    def _add_internal(self, state: dict[str, Any], text: str, line: Line) -> None:
        """Add ``event [guard] / action`` inside a state: no state is left or entered."""
        label = statements.read_label(text)
        transition = self._transition(label, line)
        if label.delay:
            state["after"].setdefault(label.delay, []).append(transition)
        for event in label.events:
            state["on"].setdefault(event_name(event, self._complain(line)), []).append(transition)

    def _add_link(self, state: dict[str, Any], node: Node, link: Link, label: Label, *, choosing: bool) -> None:
        targets = self._targets(link)
        transition = {"target": single(targets), **self._transition(label, link.line)}
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
        if label.events == (ERROR,) and isinstance(invoke, dict):
            _append(invoke, "onError", written)
        elif label.events not in ((), (DONE,)):
            return False
        elif isinstance(invoke, dict):
            _append(invoke, "onDone", written)
        elif self._has_ends(node):
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
        transition: dict[str, Any] = {}
        if label.guard:
            transition["guard"] = self._conditions.read(label.guard, self._complain(line))
        actions = self._actions(label, line)
        return transition | ({"actions": single(actions)} if actions else {})

    def _actions(self, label: Label, line: Line) -> list[dict[str, Any]]:
        return [read_action(action, self._conditions, self._complain(line)) for action in label.actions]


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


def is_choice(links: Sequence[Link], *, choosing: bool = True) -> bool:
    """Return whether the arrows from one point form a choice: at most one of them has no condition."""
    return sum(not statements.read_label(link.label, choosing=choosing).guard for link in links) <= 1


def _append(home: dict[str, Any], key: str, transition: Any) -> None:
    found = home.get(key)
    home[key] = transition if found is None else [*(found if isinstance(found, list) else [found]), transition]


def read_action(text: str, conditions: Conditions, complain: Complain) -> dict[str, Any]:
    assigned = _ASSIGNED.fullmatch(text)
    if assigned and conditions.assign(assigned["name"], assigned["value"], complain):
        return {"set": {assigned["name"]: assigned["value"]}}
    found = _VERB.fullmatch(text)
    if found and limits.check_external_event_name(found["name"]) is None:
        return {"raise": found["name"]} if found["verb"] == "raise" else {"emit": {"type": found["name"]}}
    return message_of(text, complain)
