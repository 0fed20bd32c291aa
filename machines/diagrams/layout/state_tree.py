"""How the states of a machine are nested, asked the way a drawing asks; a machine with some states folded."""

from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from machines.engine.definitions import Outline, StateOutline, TransitionOutline

from .labels import ELSE, Line, event_text, group_title, guard_text, state_details, timer_text


class Tree:
    """The states of ``outline`` by name, and what stands above and below each."""

    def __init__(self, outline: Outline, whole: Outline | None = None, *, full: bool = False) -> None:
        """Index the states. ``whole``: what ``outline`` is made of, with some of its states folded. ``full``: labels
        have all words."""
        self.outline = outline
        self.full = full
        self._whole = Tree(whole) if whole is not None else None
        self._states = {state.name: state for state in outline.states}
        self._children: dict[str | None, list[StateOutline]] = {}
        self._details: dict[str, list[Line]] = {}
        for state in outline.states:
            self._children.setdefault(state.parent, []).append(state)

    def state(self, name: str | None) -> StateOutline | None:
        return self._states.get(name) if name is not None else None

    def find_states(self, names: Iterable[str]) -> list[StateOutline]:
        """Return the states with these names, as far as there are any."""
        return [self._states[name] for name in names if name in self._states]

    def children(self, state: StateOutline | None) -> list[StateOutline]:
        """List the states in a state, in document order; of None, the states at the top."""
        return self._children.get(state.name if state else None, [])

    def parent(self, state: StateOutline) -> StateOutline | None:
        return self.state(state.parent)

    def is_cluster(self, state: StateOutline) -> bool:
        """Tell whether the state is drawn around others."""
        return bool(self._children.get(state.name))

    def is_folded(self, state: StateOutline) -> bool:
        """Tell whether there are states in it that are not drawn."""
        return state.type in ("compound", "parallel", "group") and not self.is_cluster(state)

    def can_fold(self, state: StateOutline) -> bool:
        """Tell whether it has states in it, drawn or folded, and is not the machine itself."""
        return state.name != self.outline.root and (self.is_cluster(state) or self.is_folded(state))

    def list_represented(self, state: StateOutline) -> list[StateOutline]:
        """Return the state, and those that are folded away in it."""
        if not self.is_folded(state) or self._whole is None:
            return [state]
        return [self._whole._states[state.name], *self._whole.below(state)]

    def details(self, state: StateOutline) -> list[Line]:
        """Return what is written below its name; where its inside is folded away, how much that is."""
        if (found := self._details.get(state.name)) is None:
            found = self._details[state.name] = self._read_details(state)
        return found

    def _read_details(self, state: StateOutline) -> list[Line]:
        if not self.is_folded(state) or self._whole is None:
            return state_details(state)
        inside = sum(below.type in ("atomic", "final") for below in self._whole.below(state))
        regions = [child for child in self._whole.children(state) if self._whole.is_region(child)]
        return [Line("detail", f"{len(regions)} regions, {inside} states" if regions else f"{inside} states")]

    def is_region(self, state: StateOutline) -> bool:
        """Tell whether the state is active together with the ones beside it."""
        above = self.parent(state)
        return above is not None and above.type == "parallel" and state.type != "history"

    def ancestors(self, name: str) -> Iterator[str]:
        """List the states around a state, from itself outwards."""
        state = self.state(name)
        while state is not None:
            yield state.name
            state = self.parent(state)

    def below(self, state: StateOutline) -> Iterator[StateOutline]:
        """Yield every state in it, at any depth, in document order."""
        for child in self.children(state):
            yield child
            yield from self.below(child)

    @cached_property
    def summed(self) -> dict[str, tuple[str, ...]]:
        """State -> the leaves whose counts add up to its own: of a parallel state, those of its first region,
        because an instance in it stands in every region at once. History is no state to be in."""
        if self._whole is not None:
            return self._whole.summed
        found: dict[str, tuple[str, ...]] = {}
        for state in reversed(self.outline.states):
            children = [child for child in self.children(state) if child.type != "history"]
            counting = children[:1] if state.type == "parallel" else children
            if children:
                found[state.name] = tuple(leaf for child in counting for leaf in found[child.name])
            elif state.type != "history":
                found[state.name] = (state.name,)
        return {state.name: found[state.name] for state in self.outline.states if state.name in found}

    @cached_property
    def first(self) -> StateOutline | None:
        """Where an instance starts."""
        return self.state(self.outline.initial)


def main_line(tree: Tree) -> list[list[str]]:
    """Return the usual way through: from where an instance starts, each time the first transition onwards that is no
    failure.

    One line for the states at the top, and one for those in each state. Graphviz draws them straight.
    """
    clusters = [None, *(state for state in tree.outline.states if tree.is_cluster(state) and state.type != "parallel")]
    return [_line(tree, around) for around in clusters]


def _line(tree: Tree, around: StateOutline | None) -> list[str]:
    level = {state.name: state for state in tree.children(around)}
    begins = around.initial if around else (tree.outline.initial,)
    line: dict[str, None] = {}
    name = _at(tree, begins, level)
    while name is not None and name not in line:
        line[name] = None
        onward = (t.targets for t in level[name].transitions if t.cause != "error")
        reached = (_at(tree, targets, level) for targets in onward)
        name = next((target for target in reached if target is not None and target not in line), None)
    return list(line)


def _at(tree: Tree, names: Iterable[str], level: Container[str]) -> str | None:
    """Return the state of the level that the first of the named states stands in, or is."""
    return next((above for name in names for above in tree.ancestors(name) if above in level), None)


@dataclass(frozen=True, slots=True)
class FoldedTree:
    """``shown``: state -> the state it is shown as. ``members``: transition of a line that stands for several -> all of
    these; ``titles``: -> the text that lists them."""

    outline: Outline
    shown: dict[str, str]
    members: dict[str, tuple[str, ...]]
    titles: dict[str, str]


def foldable(outline: Outline) -> tuple[str, ...]:
    """Return the states with states in them, in document order; not the one that stands for the machine itself."""
    tree = Tree(outline)
    return tuple(state.name for state in outline.states if tree.is_cluster(state) and state.name != outline.root)


def top_level(outline: Outline) -> frozenset[str]:
    """Return what to fold for a drawing of the top level alone; where the machine itself is a state, of those in it."""
    tree = Tree(outline)
    return frozenset(state.name for state in tree.children(tree.state(outline.root)) if tree.is_cluster(state))


def effective(outline: Outline, folds: Collection[str]) -> frozenset[str]:
    """Return those of ``folds`` that make a difference: names of states around others, and not within another of
    them."""
    known = set(foldable(outline)) & set(folds)
    tree = Tree(outline)
    return frozenset(name for name in known if not any(above in known for above in list(tree.ancestors(name))[1:]))


def fold(outline: Outline, folds: Collection[str], *, merged: bool) -> FoldedTree:
    """Fold states. ``merged``: transitions from one state to the same target become one line, also where nothing is
    folded."""
    return _Folding(Tree(outline), effective(outline, folds), merged).build()


class _Folding:
    def __init__(self, tree: Tree, folds: frozenset[str], merged: bool) -> None:
        self._tree = tree
        self._folds = folds
        self._merged = merged
        self._shown = {state.name: self._find_shown(state) for state in tree.outline.states}
        self._members: dict[str, tuple[str, ...]] = {}
        self._titles: dict[str, str] = {}

    def _find_shown(self, state: StateOutline) -> str:
        return next((above for above in self._tree.ancestors(state.name) if above in self._folds), state.name)

    def build(self) -> FoldedTree:
        outline = self._tree.outline
        states = tuple(self._state(state) for state in outline.states if self._shown[state.name] == state.name)
        fed = {queue for state in states for queue in (*(invoke.queue for invoke in state.invokes), *state.enqueues)}
        queues = tuple(queue for queue in outline.queues if queue in fed or not self._folds)
        initial = self._shown.get(outline.initial, outline.initial)
        small = replace(outline, states=states, initial=initial, queues=queues)
        return FoldedTree(small, self._shown, self._members, self._titles)

    def _state(self, state: StateOutline) -> StateOutline:
        """Fold a state: only the lines that leave it are left."""
        if state.name in self._folds:
            bare = replace(state, entry=(), exit=(), invokes=(), enqueues=(), initial=(), children=())
            return replace(bare, transitions=tuple(self._collect_leaving(state)))
        own = [(transition, state) for transition in state.transitions]
        if self._merged:
            moved = tuple(self._merge(own, state.name))
        else:
            moved = tuple(self._move_ends(transition, state, state.name) for transition, state in own)
        initial = tuple(dict.fromkeys(self._shown[name] for name in state.initial if name in self._shown))
        return replace(state, transitions=moved, initial=initial)

    def _collect_leaving(self, folded: StateOutline) -> Iterator[TransitionOutline]:
        inside = [(each, state) for state in (folded, *self._tree.below(folded)) for each in state.transitions]
        leaving = [(each, state) for each, state in inside if set(self._targets(each)) - {folded.name}]
        return self._merge(leaving, folded.name)

    def _merge(
        self, found: Iterable[tuple[TransitionOutline, StateOutline]], source: str
    ) -> Iterator[TransitionOutline]:
        """Merge the transitions that have the same targets."""
        ways: dict[tuple[str, ...], list[tuple[TransitionOutline, StateOutline]]] = {}
        for transition, state in found:
            ways.setdefault(self._targets(transition), []).append((transition, state))
        for same in ways.values():
            yield self._merge_group(same, source)

    def _merge_group(self, found: list[tuple[TransitionOutline, StateOutline]], source: str) -> TransitionOutline:
        first = self._move_ends(*found[0], source)
        if len(found) == 1:
            return first
        self._members[first.id] = tuple(transition.id for transition, _ in found)
        self._titles[first.id] = group_title(source, first.targets, found)
        events = tuple(dict.fromkeys(event_text(transition, state) for transition, state in found))
        guards = [guard_text(transition, state)[1:-1] for transition, state in found]
        causes = {transition.cause for transition, _ in found} - {"after"}  # its text has the delay
        return replace(
            first,
            events=events,
            guard_text=" or ".join(dict.fromkeys(guards)) if all(guards) and ELSE[1:-1] not in guards else None,
            actions=tuple(dict.fromkeys(action for transition, _ in found for action in transition.actions)),
            description="",
            delay="",
            cause=causes.pop() if len(causes) == 1 and len({each.cause for each, _ in found}) == 1 else "on",
        )

    def _move_ends(self, transition: TransitionOutline, state: StateOutline, source: str) -> TransitionOutline:
        targets = self._targets(transition)
        return replace(
            transition,
            source=source,
            target=next(iter(targets), None),
            targets=targets,
            delay=timer_text(transition, state),
            guard_text=guard_text(transition, state)[1:-1] or None,
        )

    def _targets(self, transition: TransitionOutline) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._shown[name] for name in transition.targets if name in self._shown))
