"""Whole numbers in addresses and forms: versions, revisions, pages, places of a list."""

from __future__ import annotations

DIGITS = 9  # of the number of a version, an object or a place
REVISION_DIGITS = 15


def parse_number(text: str, digits: int = DIGITS) -> int | None:
    """Return a whole number from 0 with at most so many digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
