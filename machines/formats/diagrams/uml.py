"""The state diagrams of Mermaid and PlantUML, which are nearly the same language.

States are named ``s1``, ``s2``, ... by their place in the document, so nothing a user wrote can be syntax; it stands
in labels only, escaped. Every state is declared where it belongs before any arrow mentions it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from machines.engine.definitions import Outline, StateOutline, TransitionOutline

from .labels import arrow_lines, is_internal, state_lines


@dataclass(frozen=True, slots=True)
class Dialect:
    """``escape`` one line of text; ``next_line`` between lines of a label. ``deep_start``: whether the arrow from a
    start may lead to a state further inside."""

    escape: Callable[[str], str]
    next_line: str
    history: Callable[[str, bool], str]
    deep_start: bool

    def label(self, lines: Sequence[str]) -> str:
        return self.next_line.join(self.escape(line) for line in lines)


def body(outline: Outline, dialect: Dialect) -> list[str]:
    return list(_Writer(outline, dialect).lines())


class _Writer:
    def __init__(self, outline: Outline, dialect: Dialect) -> None:
        self._outline = outline
        self._dialect = dialect
        self._ids = {state.name: f"s{state.index}" for state in outline.states}

    def lines(self) -> Iterator[str]:
        tops = [state for state in self._outline.states if state.parent is None]
        for state in tops:
            yield from self._state(state, "")
        first = self._outline.root or self._outline.initial
        yield from self._starts(None, (first,), "")
        for state in self._outline.states:
            yield from self._history_default(state)
            for transition in state.transitions:
                yield from self._transition(transition)

    def _state(self, state: StateOutline, margin: str) -> Iterator[str]:
        id = self._ids[state.name]
        if state.type == "history":
            yield margin + self._dialect.history(id, state.history == "deep")
            return
        label = self._dialect.label(state_lines(state, self._outline))
        yield f'{margin}state "{label}" as {id}' + (" {" if state.children else "")
        if state.children:
            yield from self._inside(state, margin + "  ")
            yield margin + "}"
        if state.type == "final":
            yield f"{margin}{id} --> [*]"

    def _inside(self, state: StateOutline, margin: str) -> Iterator[str]:
        """Regions of a parallel state are drawn apart; what is no region stands in the first one."""
        children = [child for name in state.children if (child := self._outline.state(name))]
        if state.type != "parallel":
            for child in children:
                yield from self._state(child, margin)
            yield from self._starts(state, state.initial, margin)
            return
        for history in [child for child in children if child.type == "history"]:
            yield from self._state(history, margin)
        for place, region in enumerate(child for child in children if child.type != "history"):
            if place:
                yield margin + "--"
            yield from self._state(region, margin)

    def _starts(self, around: StateOutline | None, names: Sequence[str], margin: str) -> Iterator[str]:
        found = names if self._dialect.deep_start else dict.fromkeys(self._child(around, name) for name in names)
        for name in found:
            if name in self._ids:
                yield f"{margin}[*] --> {self._ids[name]}"

    def _child(self, around: StateOutline | None, name: str) -> str:
        """The state right below ``around`` that the named one is, or is in."""
        parent = around.name if around else None
        lineage = self._outline.lineage(name)
        return next((state.name for state in lineage if state.parent == parent), name)

    def _history_default(self, state: StateOutline) -> Iterator[str]:
        for name in state.initial if state.type == "history" else ():
            yield f"{self._ids[state.name]} --> {self._ids[name]}"

    def _transition(self, transition: TransitionOutline) -> Iterator[str]:
        if is_internal(transition, self._outline):
            return
        lines = arrow_lines(transition)
        label = f" : {self._dialect.label(lines)}" if lines else ""
        source = self._ids[transition.source]
        targets = [self._ids[name] for name in transition.targets]
        if len(targets) == 1:
            yield f"{source} --> {targets[0]}{label}"
            return
        yield f"state {transition.id} <<fork>>"
        yield f"{source} --> {transition.id}{label}"
        for target in targets:
            yield f"{transition.id} --> {target}"
