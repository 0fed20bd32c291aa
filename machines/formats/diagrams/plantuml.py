"""PlantUML state diagrams."""

from __future__ import annotations

import re
from typing import Any

from machines.engine.definitions import Finding, outline

from .labels import clean
from .omissions import omissions
from .uml import Dialect, body

# A character is written as its code point unless it can be nothing but itself: not in PlantUML's grammar, nor for its
# preprocessor, which looks for ! and % and comments everywhere, nor in Creole, which takes doubled signs for style.
_ODD = re.compile(r"[^\w ,.()=+?/-]|(?<=[_=/.-])[_=/.-]|[_=/.-](?=[_=/.-])")


def escape(text: str) -> str:
    return _ODD.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


DIALECT = Dialect(
    escape=escape,
    next_line="\\n",
    history=lambda id, deep: f"state {id} <<history{'*' if deep else ''}>>",
    deep_start=True,
)


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Raises DefinitionError for a definition that cannot be drawn."""
    drawn = outline(definition)
    lines = ["@startuml", f"title {escape(clean(drawn.id))}", "hide empty description"]
    lines += [*body(drawn, DIALECT), "@enduml"]
    return "\n".join(lines) + "\n", omissions(definition, "a PlantUML diagram")
