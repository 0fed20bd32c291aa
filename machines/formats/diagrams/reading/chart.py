"""The states of a diagram, each where it belongs, and the arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from machines.engine import limits
from machines.engine.definitions.report import quote
from machines.formats.report import Report

from .labels import lines_of
from .lines import Line
from .statements import MARK, Arrow, Close, Note, Region, State, Statement, Text


@dataclass(eq=False, slots=True)
class Node:
    """A state. ``declared``: a line declares it inside its parent; else it belongs where it is first mentioned."""

    id: str
    line: Line
    parent: Node | None = None
    region: int = 0
    label: str = ""
    kind: str = ""
    declared: bool = False
    regions: int = 1
    is_parallel: bool = False
    texts: list[tuple[Line, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    @property
    def is_history(self) -> bool:
        return self.kind in ("history", "deep")

    def ancestors(self) -> Iterator[Node]:
        """Yield the state itself and the states around it, up to the diagram."""
        at: Node | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(eq=False, slots=True)
class Link:
    """An arrow. ``source`` is None at a start, ``target`` at an end; ``home`` and ``region`` then name its owner."""

    line: Line
    source: Node | None
    target: Node | None
    label: str
    home: Node
    region: int = 0


@dataclass(slots=True)
class Chart:
    root: Node
    nodes: list[Node]
    links: list[Link]


class Builder:
    """Takes statements in the order of the text."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._root = Node("", Line(1, ""))
        self._nodes: dict[str, Node] = {}
        self._links: list[Link] = []
        self._open: list[tuple[Node, Line]] = [(self._root, Line(1, ""))]
        self._current: dict[Node, int] = {}  # the region of each state that lines are now in

    def build(self, statements: Iterable[Statement]) -> Chart:
        for statement in statements:
            self._add(statement)
            too_much = self._too_much()
            if too_much:
                self._report.add("SB111", statement.line.place, too_much)
                break
        else:
            for node, line in self._open[1:]:
                self._report.add("SB131", line.place, f"the {{ of {quote(node.id)} is never closed", "write a } below")
        chart = Chart(self._root, [self._root, *self._nodes.values()], self._links)
        for node in self._nodes.values():
            if node.parent is not None:
                node.parent.children.append(node)
        for node in chart.nodes[:]:
            _split(node, chart)
        return chart

    def _add(self, statement: Statement) -> None:
        if isinstance(statement, State):
            self._declare(statement)
        elif isinstance(statement, Arrow):
            self._link(statement)
        elif isinstance(statement, Text):
            self._mention(statement.id, statement.line).texts.append((statement.line, statement.text))
        elif isinstance(statement, Note):
            if statement.id:
                self._mention(statement.id, statement.line).notes.append(statement.text)
        elif isinstance(statement, Region):
            self._divide()
        elif isinstance(statement, Close):
            self._close(statement.line)

    def _too_much(self) -> str:
        if len(self._open) > limits.MAX_STATE_DEPTH:
            return f"states inside states more than {limits.MAX_STATE_DEPTH} levels deep"
        if len(self._nodes) > limits.MAX_STATES:
            return f"more than {limits.MAX_STATES} states"
        return f"more than {limits.MAX_STATE_PARTS} arrows" if len(self._links) > limits.MAX_STATE_PARTS else ""

    @property
    def _here(self) -> tuple[Node, int]:
        node = self._open[-1][0]
        return node, self._current.get(node, 0)

    def _put(self, node: Node) -> None:
        node.parent, node.region = self._here

    def _declare(self, state: State) -> None:
        node = self._mention(state.id, state.line)
        if not node.declared and not any(node is around for around, _ in self._open):
            self._put(node)
            node.declared = True
        node.label = state.label or node.label
        node.kind = state.kind or node.kind
        if state.label and not state.opens and lines_of(state.label) in (["H"], ["H*"]):
            node.kind = "deep" if lines_of(state.label) == ["H*"] else "history"
        if state.text:
            node.texts.append((state.line, state.text))
        if state.opens:
            self._open.append((node, state.line))

    def _mention(self, id: str, line: Line) -> Node:
        if id not in self._nodes:
            node = self._nodes[id] = Node(id, line)
            self._put(node)
        return self._nodes[id]

    def _link(self, arrow: Arrow) -> None:
        home, region = self._here
        source = self._end(arrow.source, arrow.line)
        target = self._end(arrow.target, arrow.line)
        if source is None and target is None:
            self._report.add("SB221", arrow.line.place, "an arrow from a start to an end says nothing; it is left out")
            return
        if source is None and target is not None and not target.declared and not target.is_history:
            self._put(target)
        self._links.append(Link(arrow.line, source, target, arrow.label, home, region))

    def _end(self, id: str, line: Line) -> Node | None:
        """Return the state at one end of an arrow; None for a start or an end."""
        return None if id == MARK else self._mention(id, line)

    def _divide(self) -> None:
        node, region = self._here
        self._current[node] = region + 1
        node.regions = region + 2

    def _close(self, line: Line) -> None:
        if len(self._open) == 1:
            self._report.add("SB131", line.place, "a } that closes nothing", "remove it")
        else:
            self._open.pop()


def _split(node: Node, chart: Chart) -> None:
    """Make each region a state of its own, unless it holds one state with states inside and nothing else."""
    if node.regions == 1:
        return
    inside = [child for child in node.children if not child.is_history]
    used = sorted({child.region for child in inside})
    if len(used) < 2:
        for child in node.children:
            child.region = 0
        return
    node.is_parallel = True
    node.children = [child for child in node.children if child.is_history]
    for number, region in enumerate(used, start=1):
        members = [child for child in inside if child.region == region]
        starts = [link for link in chart.links if link.home is node and link.region == region]
        ends = [link for link in starts if link.target is None]
        if len(members) == 1 and members[0].children and not ends:
            chart.links = [link for link in chart.links if link not in starts or link.source is not None]
            members[0].region = 0
            node.children.append(members[0])
        else:
            add_region(node, number, members, chart, starts)


def add_region(node: Node, number: int, members: list[Node], chart: Chart, links: list[Link]) -> Node:
    """Add a region to a parallel state, with its states and its own arrows."""
    region = Node(f"{node.id or 'region'} {number}", members[0].line, node, declared=True, children=members)
    for member in members:
        member.parent, member.region = region, 0
    for link in links:
        link.home, link.region = region, 0
    node.children.append(region)
    chart.nodes.append(region)
    return region
