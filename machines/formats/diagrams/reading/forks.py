"""Resolves forks and joins: states that are active at the same time between them become a parallel state.

A fork into regions of a parallel state that is drawn stays a transition with several targets.
"""

from __future__ import annotations

from machines.engine.definitions.report import quote
from machines.formats.report import Report

from .chart import Chart, Link, Node, add_region

MAX_FORKS = 50  # in one diagram: each costs a walk over its arrows
MAX_BRANCHES = 20  # of one fork
_APART = "draw what runs at the same time as regions of one state, with -- between them"


def resolve(chart: Chart, report: Report) -> None:
    """Rewrite the chart. What cannot be expressed is reported and left as drawn."""
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
    why = _why_not(fork, targets, paths, chart)
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
        own = [one for one in chart.links if one.source in path and _ends(one)]
        region = add_region(fork, number, members, chart, [link, *own])
        for one in own:
            if one.target is not None and one.target.kind == "join":
                _take_over(one.target, fork, chart)
                one.target, one.home = None, region


def _ends(link: Link) -> bool:
    return link.target is None or link.target.kind == "join"


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


def _why_not(fork: Node, targets: list[Node], paths: list[set[Node]], chart: Chart) -> str:
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
