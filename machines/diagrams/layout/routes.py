"""Every line of a diagram: what it runs between.

The pieces a line is made of, one in each level on its way.

A state with states in it is a node in its own level and a level to those inside. A line from one level to another
passes at a *port* in the border of the state in between: one piece ends there and the next begins. A line
between a state and one in it stays inside, and touches the state below its heading.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from machines.diagrams.part_names import edge_id, feeds_id, queue_id, start_id, state_id
from machines.engine.definitions import StateOutline, TransitionOutline

from .labels import Line, label_size, short_lines, transition_lines
from .state_tree import Tree

Level = str | None
"""What is laid out by itself: the inside of the state with this name, or of None the whole."""


@dataclass(frozen=True)
class Wire:
    """One line from node to node. ``kind``: start, default (of history), feeds or transition. ``full``: its label
    has guard and actions in words.

    Of a transition with several targets only the first line is labelled.
    """

    id: str
    kind: str
    source: StateOutline | None
    tail: str
    head: str
    transition: TransitionOutline | None = None
    queue: str = ""
    labelled: bool = False
    full: bool = False

    @cached_property
    def lines(self) -> list[Line]:
        """Return its label, of a labelled line."""
        if self.transition is None or self.source is None:
            return []
        return (transition_lines if self.full else short_lines)(self.transition, self.source)

    @cached_property
    def size(self) -> tuple[float, float]:
        """Width and height of its label."""
        return label_size(self.lines)


def wires(tree: Tree) -> list[Wire]:
    """List the lines in the order they are drawn."""
    return [*_starts(tree), *_feeds(tree), *_transitions(tree)]


def homes(tree: Tree) -> dict[str, Level]:
    """Return node -> the level it stands in. A queue stands where the first state does that feeds it."""
    found: dict[str, Level] = {start_id(): None} if has_start(tree) else {}
    for state in tree.outline.states:
        found[state_id(state.index)] = state.parent
        if tree.is_cluster(state) and state.type not in ("parallel", "group"):
            found[start_id(state.index)] = state.name
    for state, queue in feeds(tree):
        found.setdefault(queue_id(queue), state.parent)
    return found


def has_start(tree: Tree) -> bool:
    """Tell whether a mark shows where the machine starts; where it is a state itself, that is the one inside."""
    return tree.first is not None and tree.outline.root is None


def feeds(tree: Tree) -> list[tuple[StateOutline, str]]:
    """Return which states put work on which queues, in document order, each pair once."""
    known = set(tree.outline.queues)
    pairs = [
        (state, queue)
        for state in tree.outline.states
        for queue in (*(invoke.queue for invoke in state.invokes), *state.enqueues)
        if queue in known
    ]
    return list({(state.index, queue): (state, queue) for state, queue in pairs}.values())


def _starts(tree: Tree) -> Iterator[Wire]:
    if tree.first is not None and has_start(tree):
        yield Wire(edge_id(start_id()), "start", None, start_id(), state_id(tree.first.index))
    for state in tree.outline.states:
        history = state.type == "history"
        if not history and (state.type in ("parallel", "group") or not tree.is_cluster(state)):
            continue
        tail = state_id(state.index) if history else start_id(state.index)
        for place, target in enumerate(tree.find_states(state.initial)):
            id = edge_id(start_id(state.index), place)
            yield Wire(id, "default" if history else "start", state, tail, state_id(target.index))


def _feeds(tree: Tree) -> Iterator[Wire]:
    for state, queue in feeds(tree):
        id = feeds_id(state.index, queue)
        yield Wire(id, "feeds", state, state_id(state.index), queue_id(queue), queue=queue)


def _transitions(tree: Tree) -> Iterator[Wire]:
    for state in tree.outline.states:
        for transition in state.transitions:
            for place, target in enumerate(tree.find_states(transition.targets) or [state]):
                ends = state_id(state.index), state_id(target.index)
                id = edge_id(transition.id, place)
                yield Wire(id, "transition", state, *ends, transition, labelled=not place, full=tree.full)


@dataclass(slots=True)
class Piece:
    """A line between two nodes of one level. ``port``: the node is a port of that level, to the outside or to its
    heading. ``gate``: it passes the border of the node, at a port of the level inside."""

    wire: Wire
    level: Level
    tail: str
    head: str
    tail_port: bool
    head_port: bool
    tail_gate: bool
    head_gate: bool
    is_first: bool
    is_last: bool

    @property
    def labelled(self) -> bool:
        """A label stands near the state that listens."""
        return self.wire.labelled and self.is_first


@dataclass(frozen=True, slots=True)
class Route:
    """``top``: the number of the piece in the level around all others. ``heading``: which end of the line touches a
    heading: "tail", "head" or ""."""

    wire: Wire
    pieces: tuple[Piece, ...]
    top: int
    heading: str


def port_id(wire: Wire) -> str:
    """Return the port of a line, named by the line: it passes each border once."""
    return f"port-{wire.id}"


class Routes:
    """``homes``: node -> the level it stands in. ``wires``: every line, in the order they are drawn; ``all``: the route
    of each. ``feeds``: which states put work on which queues."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.feeds = feeds(tree)
        self.homes = homes(tree)
        self.wires = wires(tree)
        self._nodes: dict[Level, list[str]] = {}
        for node, home in self.homes.items():
            self._nodes.setdefault(home, []).append(node)
        self._ways: dict[Level, tuple[Level, ...]] = {}
        self._inside = {state_id(state.index): state.name for state in tree.outline.states if tree.is_cluster(state)}
        self.all = [self._route(wire) for wire in self.wires]
        self._levels: dict[Level, list[Piece]] = {}
        self._tops: dict[Level, list[Route]] = {}
        for route in self.all:
            self._tops.setdefault(route.pieces[route.top].level, []).append(route)
            for piece in route.pieces:
                self._levels.setdefault(piece.level, []).append(piece)

    def is_around(self, node: str, other: str) -> bool:
        """Tell whether a node is a state around another node."""
        name, home = self._inside.get(node), self.homes.get(other)
        return name is not None and home is not None and name in self._tree.ancestors(home)

    def pieces(self, level: Level) -> list[Piece]:
        return self._levels.get(level, [])

    def nodes(self, level: Level) -> list[str]:
        return self._nodes.get(level, [])

    def crossing(self, level: Level) -> list[Route]:
        """Return the lines whose outermost piece is in this level."""
        return self._tops.get(level, [])

    def _route(self, wire: Wire) -> Route:
        up, down = self._list_levels(wire.tail), self._list_levels(wire.head)
        above, below = self._inside.get(wire.tail), self._inside.get(wire.head)
        if above is not None and above in down:
            levels, top, heading = down[: down.index(above) + 1][::-1], 0, "tail"
        elif below is not None and below in up:
            levels = up[: up.index(below) + 1]
            top, heading = len(levels) - 1, "head"
        else:
            meeting = next(level for level in up if level in down)
            top, heading = up.index(meeting), ""
            levels = [*up[: top + 1], *down[: down.index(meeting)][::-1]]
        return Route(wire, self._cut(wire, levels, top, heading), top, heading)

    def _list_levels(self, node: str) -> tuple[Level, ...]:
        """Return the levels a node stands in, from its own outwards."""
        home = self.homes[node]
        if (found := self._ways.get(home)) is None:
            found = self._ways[home] = (*(self._tree.ancestors(home) if home is not None else ()), None)
        return found

    def _cut(self, wire: Wire, levels: Sequence[Level], top: int, heading: str) -> tuple[Piece, ...]:
        last = len(levels) - 1
        if not last and not heading:
            return (Piece(wire, levels[0], wire.tail, wire.head, False, False, False, False, True, True),)
        return tuple(
            Piece(
                wire,
                level,
                tail=self._node(wire, wire.tail, levels, place - 1, place <= top, place == 0, heading == "tail"),
                head=self._node(wire, wire.head, levels, place + 1, place >= top, place == last, heading == "head"),
                tail_port=place > top or (place == 0 and heading == "tail"),
                head_port=place < top or (place == last and heading == "head"),
                tail_gate=0 < place <= top,
                head_gate=top <= place < last,
                is_first=place == 0,
                is_last=place == last,
            )
            for place, level in enumerate(levels)
        )

    def _node(
        self, wire: Wire, end: str, levels: Sequence[Level], beside: int, outside: bool, is_end: bool, heading: bool
    ) -> str:
        """Return where a piece ends: at the line's own end, at the state around the piece before or after, or at a
        port."""
        if is_end:
            return port_id(wire) if heading else end
        state = self._tree.state(levels[beside])
        return state_id(state.index) if outside and state is not None else port_id(wire)
