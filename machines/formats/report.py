"""The findings of one document. Each is reported once, however often the document is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from machines.engine.definitions.findings import CODES, Finding, make_finding
from machines.formats.text import MAX_FINDINGS


class Report:
    """Collects findings. Errors and warnings have separate limits, so that many warnings cannot hide an error."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}
        self._counts: Counter[str] = Counter()

    def add(self, code: str, where: str | Callable[[], str], message: str, hint: str = "") -> None:
        """Add a finding.

        ``where`` may be a function. It walks through the text, so it is called only while there is room.
        """
        if self._counts[CODES[code].severity] < MAX_FINDINGS:
            self._keep(make_finding(code, where if isinstance(where, str) else where(), message, hint))

    def extend(self, findings: list[Finding]) -> None:
        for found in findings:
            self._keep(found)

    def _keep(self, found: Finding) -> None:
        if found not in self._found:
            self._found[found] = None
            self._counts[found.severity] += 1

    @property
    def findings(self) -> list[Finding]:
        """Return the findings, in the order of their places in the text."""
        return sorted(self._found, key=lambda found: _position(found.path))


def _position(path: str) -> tuple[int, ...]:
    """Return the numbers of ``line 3, column 7``. Findings without a place come first."""
    return tuple(int(word) for word in path.replace(",", "").split() if word.isdigit())
