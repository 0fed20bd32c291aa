"""The names of archives, as ``SIGNALBOX_ARCHIVE`` has them."""

from __future__ import annotations

WANTED = "sql, none or parquet:/path"
FOLDER = "parquet:"


def is_archive(text: str) -> bool:
    """Tell whether a text names an archive."""
    return text in ("sql", "none") or (text.startswith(f"{FOLDER}/") and len(text) > len(FOLDER) + 1)
