"""Presents a delivery in the delivery log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.shared.times.times import in_ms
from machines.models import Delivery


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a delivery. Times in ms."""

    delivery: Delivery
    made: int
    due: int
    attempts: list[dict[str, Any]]


def make_row(row: Delivery) -> Row:
    attempts = [attempt | {"at": in_ms(datetime.fromisoformat(attempt["at"]))} for attempt in row.attempts]
    rest = row.webhook.rest_until  # one that fails is left alone, whatever is due
    return Row(row, in_ms(row.made_at), in_ms(max(row.due, rest) if rest else row.due), attempts[::-1])
