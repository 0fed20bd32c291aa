"""Which fields of a machine are not for everyone: what any published version marks with ``"sensitive": true``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SensitiveFields:
    """``data``: names of data fields; ``events``: by event the names of payload fields. False where there is none."""

    data: frozenset[str] = frozenset()
    events: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.data or self.events)

    @property
    def names(self) -> frozenset[str]:
        """Every name, of whatever it is."""
        return self.data.union(*self.events.values())


def read_sensitive_fields(text: str | None) -> SensitiveFields:
    """From what ``sb_publish`` keeps: ``{"data": {field: 1}, "events": {event: {field: 1}}}``; None: nothing is."""
    held = json.loads(text) if text else {}
    events = {event: frozenset(fields) for event, fields in held.get("events", {}).items()}
    return SensitiveFields(frozenset(held.get("data", ())), events)
