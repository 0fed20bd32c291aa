"""Mermaid: ``stateDiagram-v2``."""

from __future__ import annotations

import json
import re
from typing import Any

from machines.engine.definitions import Finding, Outline, outline
from machines.engine.definitions.findings import make_finding

from .labels import clean, is_internal
from .omissions import omissions
from .uml import Dialect, body

# A character is written as #code; unless it can be nothing but itself, in Mermaid's grammar and in Markdown,
# which Mermaid looks for in labels.
_ODD = re.compile(r"[^\w ,.()=/?']|_|(?<=\d)[.)](?= |$)")


def escape(text: str) -> str:
    return _ODD.sub(lambda match: f"#{ord(match[0])};", text)


DIALECT = Dialect(
    escape=escape,
    next_line="<br/>",
    history=lambda id, deep: f'state "H{escape("*") if deep else ""}" as {id}',
    deep_start=False,
)


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Raises DefinitionError for a definition that cannot be drawn."""
    drawn = outline(definition)
    lines = ["---", f"title: {_quoted(drawn.id)}", "---", "stateDiagram-v2"]
    lines += [f"  {line}" for line in body(drawn, DIALECT)]
    return "\n".join(lines) + "\n", [*omissions(definition, "a Mermaid diagram"), *_unlike(drawn)]


def _quoted(text: str) -> str:
    """For YAML, without what Mermaid would rewrite before it reads the YAML."""
    return re.sub(r"[<>&%]", lambda match: f"\\u{ord(match[0]):04x}", json.dumps(clean(text), ensure_ascii=False))


def _unlike(drawn: Outline) -> list[Finding]:
    """What is drawn in another way than in UML."""
    found = []
    histories = [state.name for state in drawn.states if state.type == "history"]
    if histories:
        message = f"Mermaid has no history states; {', '.join(histories)} became an ordinary state called H"
        found.append(make_finding("SB222", "", message))
    starts = [state.name for state in drawn.states if any(name not in state.children for name in _start(state))]
    if starts or _outside(drawn):
        message = f"a start inside another state cannot be drawn: {', '.join(starts) or drawn.id} starts further inside"
        found.append(make_finding("SB222", "", message))
    crossing = sum(
        _crosses(source.parent, drawn, target) for source in drawn.states for target in _targets(source, drawn)
    )
    if crossing:
        message = f"{crossing} arrows cross the border of a state; some releases of Mermaid do not draw those"
        found.append(make_finding("SB224", "", message))
    return found


def _start(state: Any) -> tuple[str, ...]:
    return state.initial if state.type == "compound" else ()


def _outside(drawn: Outline) -> bool:
    first = drawn.state(drawn.initial)
    return first is not None and first.parent is not None and drawn.root is None


def _targets(source: Any, drawn: Outline) -> list[str]:
    return [name for t in source.transitions if not is_internal(t, drawn) for name in t.targets]


def _crosses(parent: str | None, drawn: Outline, target: str) -> bool:
    found = drawn.state(target)
    return found is not None and found.parent != parent
