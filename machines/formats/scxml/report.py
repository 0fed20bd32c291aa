"""The findings of one document, each said once however often the document is read."""

from __future__ import annotations

from machines.engine.definitions.findings import Finding, finding

from ..text import MAX_FINDINGS


class Report:
    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    def add(self, code: str, where: str, message: str, hint: str = "") -> None:
        if len(self._found) < MAX_FINDINGS:
            self._found.setdefault(finding(code, where, message, hint))

    def extend(self, findings: list[Finding]) -> None:
        for found in findings:
            self._found.setdefault(found)

    @property
    def findings(self) -> list[Finding]:
        """In the order of their places in the text."""
        return sorted(self._found, key=lambda found: _position(found.path))


def _position(path: str) -> tuple[int, ...]:
    """``line 3, column 7`` as numbers; what has no place comes first."""
    return tuple(int(word) for word in path.replace(",", "").split() if word.isdigit())
