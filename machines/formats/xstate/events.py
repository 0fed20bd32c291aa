"""Matches descriptors and events: a name, or its pattern, matches longer ones that begin with it and a dot."""

from __future__ import annotations


def covering(event: str) -> list[str]:
    """Return the other descriptors that match this event: shorter names, patterns, and ``*``."""
    base = event.removesuffix(".*")
    ends = [place for place, character in enumerate(base) if character == "."]
    shorter = [base[:end] for end in ends]
    return [*shorter, *(f"{one}.*" for one in [*shorter, base] if f"{one}.*" != event), "*"] if base else []
