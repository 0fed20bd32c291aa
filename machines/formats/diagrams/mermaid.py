"""Mermaid: ``stateDiagram-v2``.

States are named ``s1``, ``s2``, ... by their place in the document. User text is only used in labels, escaped, so it
can never be read as syntax. Every state is declared inside its parent before any arrow mentions it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from machines.diagrams.layout.labels import drawable, event_text
from machines.engine.definitions import Finding, Outline, StateOutline, TransitionOutline, outline
from machines.engine.definitions.findings import make_finding

from .dot import omissions

# A character is written as #code, unless it has no special meaning in Mermaid's grammar and in Markdown,
# which Mermaid looks for in labels.
_ODD = re.compile(r"[^\w ,.()=/?']|_|(?<=\d)[.)](?= |$)")


def escape(text: str) -> str:
    return _ODD.sub(lambda match: f"#{ord(match[0])};", text)


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as a Mermaid diagram. Raises DefinitionError for a definition that cannot be drawn."""
    drawn = outline(definition)
    lines = ["---", f"title: {_quote(drawn.id)}", "---", "stateDiagram-v2"]
    lines += [f"  {line}" for line in _Writer(drawn).lines()]
    return "\n".join(lines) + "\n", [*omissions(definition, "a Mermaid diagram"), *_find_differences(drawn)]


def _quote(text: str) -> str:
    """Quote a text for YAML, without the characters that Mermaid would rewrite before it reads the YAML."""
    return re.sub(r"[<>&%]", lambda match: f"\\u{ord(match[0]):04x}", json.dumps(clean(text), ensure_ascii=False))


def _find_differences(drawn: Outline) -> list[Finding]:
    """Return findings about parts that are drawn differently than in UML."""
    found = []
    histories = [state.name for state in drawn.states if state.type == "history"]
    if histories:
        message = f"Mermaid has no history states; {', '.join(histories)} became an ordinary state called H"
        found.append(make_finding("SB222", "", message))
    starts = [one.name for one in drawn.states if one.type == "compound" and not set(one.initial) <= set(one.children)]
    first = drawn.state(drawn.initial)
    if starts or (first is not None and first.parent is not None and drawn.root is None):
        message = f"a start inside another state cannot be drawn: {', '.join(starts) or drawn.id} starts further inside"
        found.append(make_finding("SB222", "", message))
    crossing = sum(
        (found_state := drawn.state(target)) is not None and found_state.parent != source.parent
        for source in drawn.states
        for transition in source.transitions
        if not is_internal(transition, drawn)
        for target in transition.targets
    )
    if crossing:
        message = f"{crossing} arrows cross the border of a state; some releases of Mermaid do not draw those"
        found.append(make_finding("SB224", "", message))
    return found


class _Writer:
    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._ids = {state.name: f"s{state.index}" for state in outline.states}

    def lines(self) -> Iterator[str]:
        tops = [state for state in self._outline.states if state.parent is None]
        for state in tops:
            yield from self._state(state, "")
        first = self._outline.root or self._outline.initial
        yield from self._starts(None, (first,), "")
        for state in self._outline.states:
            for name in state.initial if state.type == "history" else ():
                yield f"{self._ids[state.name]} --> {self._ids[name]}"
            for transition in state.transitions:
                yield from self._transition(transition, state)

    def _state(self, state: StateOutline, margin: str) -> Iterator[str]:
        id = self._ids[state.name]
        if state.type == "history":
            yield f'{margin}state "H{escape("*") if state.history == "deep" else ""}" as {id}'
            return
        label = _label(state_lines(state, self._outline))
        yield f'{margin}state "{label}" as {id}' + (" {" if state.children else "")
        if state.children:
            yield from self._write_inside(state, margin + "  ")
            yield margin + "}"
        if state.type == "final":
            yield f"{margin}{id} --> [*]"

    def _write_inside(self, state: StateOutline, margin: str) -> Iterator[str]:
        """Yield the inside of a state.

        The regions of a parallel state are separated. Any other child of it goes into the first region.
        """
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
        """Yield arrows from the start. Each one leads to a direct child, never further inside."""
        for name in dict.fromkeys(self._child(around, name) for name in names):
            if name in self._ids:
                yield f"{margin}[*] --> {self._ids[name]}"

    def _child(self, around: StateOutline | None, name: str) -> str:
        """Return the child of ``around`` that is the named state or contains it."""
        parent = around.name if around else None
        lineage = self._outline.lineage(name)
        return next((state.name for state in lineage if state.parent == parent), name)

    def _transition(self, transition: TransitionOutline, state: StateOutline) -> Iterator[str]:
        if is_internal(transition, self._outline):
            return
        lines = arrow_lines(transition, state)
        label = f" : {_label(lines)}" if lines else ""
        source = self._ids[transition.source]
        targets = [self._ids[name] for name in transition.targets]
        if len(targets) == 1:
            yield f"{source} --> {targets[0]}{label}"
            return
        yield f"state {transition.id} <<fork>>"
        yield f"{source} --> {transition.id}{label}"
        for target in targets:
            yield f"{transition.id} --> {target}"


def _label(lines: Sequence[str]) -> str:
    return "<br/>".join(escape(line) for line in lines)


# -- what is written on states and arrows, in the order and spelling of UML -----------------------------


def state_lines(state: StateOutline, outline: Outline) -> list[str]:
    """Return the lines of a state: its name; entry, exit and work; then transitions that do not leave the state."""
    lines = [state.name]
    lines += [f"entry / {action}" for action in state.entry]
    lines += [f"exit / {action}" for action in state.exit]
    lines += [f"do / machine {one.machine}" if one.machine else f"do / {one.src}" for one in state.invokes]
    lines += [f"output / {state.output}"] if state.output else []
    for transition in state.transitions:
        if is_internal(transition, outline):
            lines.append(" ".join(arrow_lines(transition, state)))
    return [clean(line) for line in lines]


def arrow_lines(transition: TransitionOutline, state: StateOutline) -> list[str]:
    """Return the label of a transition: ``event [guard]``, then each action on a line of its own."""
    guard = f"[{transition.guard_text}]" if transition.guard_text else ""
    event = "" if transition.cause == "always" else event_text(transition, state)
    first = f"{event} {guard}".strip()
    lines = [first, *(f"/ {action}" for action in transition.actions)]
    return [clean(line) for line in lines if line]


def is_internal(transition: TransitionOutline, outline: Outline) -> bool:
    """Return whether a transition stays in a state without children. UML writes such a transition into the state."""
    if not transition.targets:
        return True
    source = outline.state(transition.source)
    stays = transition.targets == (transition.source,) and not transition.reenter
    return stays and source is not None and source.is_leaf


def clean(text: str) -> str:
    """Return a text on one line, without characters that no document may contain."""
    return " ".join(drawable(text).split())
