"""Resolves targets as XState does. The tree of states has the same shape as the definition's."""

from __future__ import annotations

import re
from typing import Any

from machines.engine.definitions.scope import Branch, Tree

_ESCAPED = re.compile(r"\\(.)|(\.)", re.DOTALL)


class States:
    """The states of a config. ``machine`` is the config's own id."""

    def __init__(self, machine: str, config: dict[str, Any]) -> None:
        self._tree = Tree(machine, config)
        self._machine = machine
        self._ids = {branch.explicit: branch for branch in self._tree.branches if branch.explicit}
        self.top = self._tree.top
        self.names = frozenset(branch.name for branch in self._tree.branches)

    def resolve(self, source: Branch, target: str) -> Branch | None:
        """Find the state of ``#id``, ``#id.child``, ``.child``, or of a sibling of the source."""
        if target.startswith("#"):
            return self.find_by_id(target[1:])
        if target.startswith("."):
            return _descend(source, target[1:])
        return _descend(source.parent or source, target)

    def find_by_id(self, id: str) -> Branch | None:
        """Find a state by an explicit id, or by the default id: the machine's id and the keys down to the state."""
        if id in self._ids:
            return self._ids[id]
        if id == self._machine:
            return self.top
        for end in reversed([place for place, character in enumerate(id) if character == "."]):
            start = self._ids.get(id[:end]) or (self.top if id[:end] == self._machine else None)
            if start is not None:
                return _descend(start, id[end + 1 :])
        return None


def is_around(branch: Branch, other: Branch | None) -> bool:
    """Return whether the other one is this state or is inside it."""
    return other is not None and (other is branch or other.is_inside(branch))


def _descend(branch: Branch | None, path: str) -> Branch | None:
    if branch is None or not path:
        return branch
    found = branch.descend(path)
    if found is not None or "\\" not in path:
        return found
    at: Branch | None = branch
    for key in split(path):
        at = at.children.get(key) if at else None
    return at


def split(path: str) -> list[str]:
    """Split a path into keys. A dot ends a key, and a backslash escapes the next character."""
    keys, start = [""], 0
    for match in _ESCAPED.finditer(path):
        keys[-1] += path[start : match.start()] + (match[1] or "")
        if match[2]:
            keys.append("")
        start = match.end()
    keys[-1] += path[start:]
    return keys
