"""Draws the diagram of a state machine without a definition: its map, read as the `sm` format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from django.utils.safestring import SafeString

from dashboard.shared.diagrams.diagram_overlay import Overlay
from dashboard.shared.diagrams.version_view import VersionView
from machines import diagrams, formats
from machines.engine.definitions import outline
from machines.engine.errors import DefinitionError
from machines.instances.sm_keys import Kept

MAX_DRAWINGS = 32  # drawings of maps that were looked at last
MAX_STATES, MAX_ARROWS = 200, 600  # a larger diagram is unreadable, and takes seconds to lay out


@dataclass(frozen=True, slots=True)
class Drawing:
    """Holds the diagram. ``svg`` is None if there is none; ``why`` says why."""

    svg: SafeString | None = None
    is_vast: bool = False
    why: tuple[str, ...] = ()


def draw_key(kept: Kept) -> Drawing:
    """Draw the map with its current state highlighted and the transitions out of it marked."""
    arrows = sum(len(targets) for targets in kept.map.values())
    if not kept.map:
        return Drawing(why=("The map has no states.",))
    if len(kept.map) > MAX_STATES or arrows > MAX_ARROWS:
        return Drawing(
            why=(f"The map has {len(kept.map):,} states and {arrows:,} transitions: too many for a diagram.",)
        )
    view = _load_map(json.dumps({"initial": kept.initial, "map": kept.map, "current": "", "reason": ""}))
    if isinstance(view, tuple):
        return Drawing(why=view)
    overlay = Overlay()
    state = view.outline.state(kept.current)
    if state is not None:
        overlay.mark(view.index["states"][state.name], "current")
        for transition in state.transitions:
            overlay.mark(view.index["transitions"][transition.id], "possible")
    return Drawing(overlay.draw_on(view.svg), view.is_vast)


@lru_cache(maxsize=MAX_DRAWINGS)
def _load_map(text: str) -> VersionView | tuple[str, ...]:
    """Load a map as a definition; or return the errors that prevent it."""
    try:
        found = outline(formats.load(text, format="sm"))
    except DefinitionError as error:
        return tuple(finding.message for finding in error.findings if finding.is_error)[:5]
    return VersionView(found.id, 0, found, diagrams.draw(found).svg, diagrams.index(found), "")
