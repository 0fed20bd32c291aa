"""The sensitive fields of a machine: those that any published version marks with ``"sensitive": true``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SensitiveFields:
    """Names of sensitive fields. ``data``: data fields; ``events``: payload fields by event. False where there is
    none."""

    data: frozenset[str] = frozenset()
    events: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.data or self.events)

    @property
    def names(self) -> frozenset[str]:
        """Return every name, of data and of payload fields."""
        return self.data.union(*self.events.values())


def read_sensitive_fields(text: str | None) -> SensitiveFields:
    """Read what ``sb_publish`` stores, ``{"data": {field: 1}, "events": {event: {field: 1}}}``; None: no field is
    sensitive."""
    held = json.loads(text) if text else {}
    events = {event: frozenset(fields) for event, fields in held.get("events", {}).items()}
    return SensitiveFields(frozenset(held.get("data", ())), events)
