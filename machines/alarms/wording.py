"""Words that several alarms share."""

from __future__ import annotations

from collections.abc import Sequence


def pluralize(count: int, what: str) -> str:
    """Return ``1 job`` or ``1,200 jobs``."""
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def join_words(words: Sequence[str], most: int = 0) -> str:
    """Return ``a, b and c``; of more than ``most`` words the first, and how many more there are."""
    if most and len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
