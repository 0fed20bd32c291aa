"""The sections of the Patterns page, in the order they stand on it."""

from __future__ import annotations

from .coordination import BusSection, IdsSection, LocksSection, ThrottleSection
from .section import Form, Section, Table, View
from .storage import CardinalitySection, CasSection, ScoreboardSection, SessionsSection, WriteBufferSection

__all__ = ["SECTIONS", "Form", "Section", "Table", "View"]

SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        SessionsSection(), WriteBufferSection(), ThrottleSection(), IdsSection(), LocksSection(), BusSection(),
        CardinalitySection(), ScoreboardSection(), CasSection(),
    )
}  # fmt: skip
