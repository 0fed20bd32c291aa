"""The states of a diagram, each where it belongs, and the arrows between them; forks and joins resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from machines.engine import limits
from machines.engine.definitions.findings import quote
from machines.formats.text import Report

from .statements import MARK, Arrow, Close, Line, Note, Region, State, Statement, Text, lines_of

MAX_FORKS = 50  # in one diagram: each costs a walk over its arrows
MAX_BRANCHES = 20  # of one fork
_APART = "draw what runs at the same time as regions of one state, with -- between them"


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
            too_much = self._explain_excess()
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
        elif isinstance(statement, Note) and statement.id:
            self._mention(statement.id, statement.line).notes.append(statement.text)
        elif isinstance(statement, Region):
            node, region = self._here
            self._current[node] = region + 1
            node.regions = region + 2
        elif isinstance(statement, Close) and len(self._open) > 1:
            self._open.pop()
        elif isinstance(statement, Close):
            self._report.add("SB131", statement.line.place, "a } that closes nothing", "remove it")

    def _explain_excess(self) -> str:
        if len(self._open) > limits.MAX_STATE_DEPTH:
            return f"states inside states more than {limits.MAX_STATE_DEPTH} levels deep"
        if len(self._nodes) > limits.MAX_STATES:
            return f"more than {limits.MAX_STATES} states"
        return f"more than {limits.MAX_STATE_PARTS} arrows" if len(self._links) > limits.MAX_STATE_PARTS else ""

    @property
    def _here(self) -> tuple[Node, int]:
        node = self._open[-1][0]
        return node, self._current.get(node, 0)

    def _declare(self, state: State) -> None:
        node = self._mention(state.id, state.line)
        if not node.declared and not any(node is around for around, _ in self._open):
            node.parent, node.region = self._here
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
            node.parent, node.region = self._here
        return self._nodes[id]

    def _link(self, arrow: Arrow) -> None:
        home, region = self._here
        source, target = (None if id == MARK else self._mention(id, arrow.line) for id in (arrow.source, arrow.target))
        if source is None and target is None:
            self._report.add("SB221", arrow.line.place, "an arrow from a start to an end says nothing; it is left out")
            return
        if source is None and target is not None and not target.declared and not target.is_history:
            target.parent, target.region = self._here
        self._links.append(Link(arrow.line, source, target, arrow.label, home, region))


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


def resolve_forks(chart: Chart, report: Report) -> None:
    """Make a parallel state of what runs between a fork and its join, unless the fork leads into drawn regions.

    What cannot be expressed is reported and left as drawn.
    """
    forks = [node for node in chart.nodes if node.kind == "fork"]
    for fork in forks[:MAX_FORKS]:
        _fork(fork, chart, report)
    for fork in forks[MAX_FORKS:]:
        fork.kind = ""
        report.add("SB111", fork.line.place, f"more than {MAX_FORKS} forks")
    for join in [node for node in chart.nodes if node.kind == "join"][:MAX_FORKS]:
        _join(join, chart, report)


def regions_of(nodes: list[Node]) -> tuple[Node | None, list[Node]]:
    """Return the innermost parallel state around all nodes, and the region of each node; None if there is none."""
    for around in nodes[0].ancestors():
        if not around.is_parallel:
            continue
        found = [next((at for at in node.ancestors() if at.parent is around), None) for node in nodes]
        regions = [one for one in found if one is not None]
        if len(regions) == len(nodes) == len(set(regions)):
            return around, regions
    return None, []


def _fork(fork: Node, chart: Chart, report: Report) -> None:
    branches = [link for link in chart.links if link.source is fork]
    targets = [link.target for link in branches if link.target is not None]
    if len(targets) < 2 or len(targets) < len(branches):
        fork.kind = "choice"
        if targets != [link.target for link in branches]:
            report.add("SB141", fork.line.place, f"the fork {quote(fork.id)} leads to an end", _APART)
        return
    if regions_of(targets)[0] is not None:
        if fork.parent is not None:
            fork.parent.children.remove(fork)
        return
    outgoing: dict[Node | None, list[Link]] = {}
    for link in chart.links:
        outgoing.setdefault(link.source, []).append(link)
    paths = [_path(target, outgoing) for target in targets[:MAX_BRANCHES]]
    why = _find_obstacle(fork, targets, paths, chart)
    if why:
        fork.kind = ""
        report.add("SB141", fork.line.place, f"the fork {quote(fork.id)} cannot be said: {why}", _APART)
        return
    fork.kind, fork.is_parallel = "", True
    fork.declared = True
    assert fork.parent is not None
    for number, (link, path) in enumerate(zip(branches, paths, strict=True), start=1):
        members = [node for node in fork.parent.children if node in path]
        fork.parent.children = [node for node in fork.parent.children if node not in path]
        link.source = None
        own = [one for one in chart.links if one.source in path and (one.target is None or one.target.kind == "join")]
        region = add_region(fork, number, members, chart, [link, *own])
        for one in own:
            if one.target is not None and one.target.kind == "join":
                _take_over(one.target, fork, chart)
                one.target, one.home = None, region


def _take_over(join: Node, parallel: Node, chart: Chart) -> None:
    """Move the arrows that leave a join to the parallel state, which is left once all of its regions are done."""
    for link in chart.links:
        if link.source is join:
            link.source = parallel
    if join.parent is not None and join in join.parent.children:
        join.parent.children.remove(join)


def _path(start: Node, outgoing: dict[Node | None, list[Link]]) -> set[Node]:
    """Return the states that can be reached from a state, up to a join."""
    if start.kind == "join":
        return set()
    found, waiting = {start}, [start]
    while waiting:
        for link in outgoing.get(waiting.pop(), ()):
            target = link.target
            if target is not None and target.kind != "join" and target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _find_obstacle(fork: Node, targets: list[Node], paths: list[set[Node]], chart: Chart) -> str:
    if len(targets) > MAX_BRANCHES:
        return f"it has more than {MAX_BRANCHES} branches"
    if any(target.kind == "join" for target in targets):
        return "it leads straight to a join"
    if any(node.parent is not fork.parent for path in paths for node in path):
        return "what follows it stands in several states"
    if fork in set().union(*paths) or len(set().union(*paths)) < sum(len(path) for path in paths):
        return "its branches meet before a join, or lead back"
    joins = {
        link.target for path in paths for link in chart.links if link.source in path and link.target is not None
    } - set().union(*paths)
    if len(joins) > 1:
        return "its branches end at several joins"
    for path in paths:
        if any(link.target in path and link.source not in path and link.source is not fork for link in chart.links):
            return "another arrow leads into one of its branches"
    return ""


def _join(join: Node, chart: Chart, report: Report) -> None:
    arrows = [link for link in chart.links if link.target is join]
    sources = [link.source for link in arrows if link.source is not None]
    if not sources:
        return  # handled by its fork
    around, regions = regions_of(sources) if len(sources) > 1 else (None, [])
    states = [] if around is None else [node for node in around.children if not node.is_history]
    if around is None or len(sources) < len(arrows) or set(regions) != set(states):
        join.kind = ""
        message = f"the join {quote(join.id)} does not join all regions of one state"
        report.add("SB141", join.line.place, message, _APART)
        return
    for link, region in zip(arrows, regions, strict=True):
        link.target, link.home, link.region = None, region, 0
    _take_over(join, around, chart)
