"""Draws the diagram of an instance: its current state, the transitions that are available, and steps of its past."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.safestring import SafeString

from dashboard.shared.diagrams.diagram_overlay import (
    Address,
    Overlay,
    find_state_parts,
    find_transition_parts,
    link_folds,
)
from dashboard.shared.diagrams.version_view import VersionView
from machines.engine import Instance, Step


def draw_instance(
    view: VersionView,
    instance: Instance,
    possible: Mapping[str, str],
    *,
    actions: Mapping[str, str] | None = None,
    address: Address | None = None,
) -> SafeString:
    """Highlight every active state, in each region and around it, and the transitions that are available now.

    ``possible``: transition -> kind of its route; ``actions``: transition -> the anchor of its
    form. ``address``: returns the address of this page with another drawing.
    """
    overlay = Overlay()
    if address:
        link_folds(view, overlay, address)
    for part in find_state_parts(view, instance.configuration):
        overlay.mark(part, "current")
    for part in find_transition_parts(view, (id for id, kind in possible.items() if kind in ("holds", "depends"))):
        overlay.mark(part, "possible")
    for id, anchor in (actions or {}).items():
        if possible.get(id) in ("holds", "depends") and id in view.index["transitions"]:
            overlay.links.setdefault(view.index["transitions"][id], f"#{anchor}")
    for part in find_transition_parts(view, instance.outcome.transitions if instance.outcome else ()):
        overlay.mark(part, "taken")
    return overlay.draw_on(view.svg)


def draw_step(
    view: VersionView, step: Step, other: Step | None = None, *, address: Address | None = None
) -> SafeString:
    """Highlight the result of a step and the transitions it took. The result of ``other`` gets a dashed frame."""
    overlay, lit = Overlay(), find_state_parts(view, step.configuration)
    if address:
        link_folds(view, overlay, address)
    for part in lit:
        overlay.mark(part, "current")
    for part in find_transition_parts(view, step.transitions):
        overlay.mark(part, "taken")
    for part in find_state_parts(view, other.configuration) if other else ():
        if part not in lit:
            overlay.mark(part, "compared")
    return overlay.draw_on(view.svg)
