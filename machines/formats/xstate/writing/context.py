"""The state that all parts of the writer share, and the findings, each kind once."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from machines.engine.definitions.report import Path, Report
from machines.engine.definitions.scope import Branch, Tree


@dataclass(slots=True)
class Writing:
    """``events``: every event that is listened for or sent, sorted, to find names that begin with another name."""

    report: Report
    tree: Tree
    events: list[str] = field(default_factory=list)
    _reported: set[str] = field(default_factory=set)

    def longer(self, event: str) -> str | None:
        """Return an event whose name begins with this one and a dot."""
        place = bisect_left(self.events, f"{event}.")
        found = self.events[place] if place < len(self.events) else ""
        return found if found.startswith(f"{event}.") else None

    def once(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Add a finding at the first place that it applies to."""
        if message not in self._reported:
            self._reported.add(message)
            self.report.add(code, path, message, hint)

    def id(self, branch: Branch) -> str:
        """Return the id that XState gives the state."""
        if branch.explicit or branch.parent is None:
            return branch.explicit or self.tree.machine
        return ".".join([self.tree.machine, *map(escape, branch.keys)])

    def target(self, text: str, source: Branch, near: Branch) -> str:
        """Write a target for XState: the key of a sibling, or the state's id."""
        found = self.tree.find(text, source, near)
        if found is None:
            return text
        if found.parent is near and source.parent is not None:
            return escape(found.key)
        return f"#{self.id(found)}"


def escape(key: str) -> str:
    """Escape a key in a target. In XState a dot separates keys, and a backslash makes it part of one."""
    return key.replace("\\", "\\\\").replace(".", "\\.")


def one_or_many(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def single(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found
