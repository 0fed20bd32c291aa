"""Which parts of a diagram stand for what another version added, removed or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def list_changed_parts(index: Mapping[str, Any], parts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return id of a part -> "added", "removed", "renamed" or "changed".

    ``index``: that of the drawing, from ``index()``; ``parts``: ``old_parts`` or ``new_parts`` of a DefinitionDiff, for
    a drawing of that version. A part that stands for several things (of a drawing with folds) is "changed" unless
    all of them are the same.
    """
    found: dict[str, set[str]] = {}
    for kind in ("states", "transitions", "queues"):
        for name, id in index[kind].items():
            found.setdefault(id, set()).add(parts[kind].get(name, ""))
    marked = {id: verbs for id, verbs in found.items() if verbs != {""}}
    return {id: verbs.pop() if len(verbs) == 1 else "changed" for id, verbs in marked.items()}
