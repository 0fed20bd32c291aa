"""The names of archives, as ``SIGNALBOX_ARCHIVE`` has them."""

from __future__ import annotations

WANTED = "sql or none"


def is_archive(text: str) -> bool:
    """Tell whether a text names an archive."""
    return text in ("sql", "none")
