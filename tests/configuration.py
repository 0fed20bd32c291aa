"""Overrides keys of the dict ``SIGNALBOX`` for one test."""

from __future__ import annotations

from typing import Any


def configure(settings: Any, **values: Any) -> None:
    """Set keys of ``SIGNALBOX``: ``configure(settings, PREFIX="t:")``. A new dict, so that it is read again."""
    settings.SIGNALBOX = settings.SIGNALBOX | values
