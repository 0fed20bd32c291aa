"""The findings of a definition, collected in a report. Each kind has a code, which never changes once published;
``docs/finding-reference.md`` lists them."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from machines.engine.records import PlainRecord

if TYPE_CHECKING:
    from .model import Machine

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding(PlainRecord):
    """One error (stops publishing) or warning of a definition.

    ``path`` is its place: ``states.Waiting.on.entitle[0].target``, or ``line 3, column 7`` for a text that cannot be
    parsed; empty for the definition as a whole.
    """

    code: str
    path: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    @property
    def is_error(self) -> bool:
        """Tell whether it stops publishing."""
        return self.severity == "error"

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.code} {self.path or 'definition'}: {self.message}{hint}"


def get_severity(code: str) -> Severity:
    return "error" if code < "SB2" else "warning"


def make_finding(code: str, path: str, message: str, hint: str = "") -> Finding:
    """Make a finding with the severity of its code."""
    return Finding(code, path, message, hint, get_severity(code))


Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_LONGEST = 60  # characters of one name that are shown


def render(path: Path) -> str:
    """Format a path: ``states.Waiting.on.entitle[0].target``; odd names in brackets: ``states["on
    hold"].on["door.*"]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part) and len(part) <= _LONGEST:
            text += f".{part}" if text else part
        else:
            text += f"[{quote(part)}]"
    return text


def quote(text: str) -> str:
    """Put a name in double quotes, cut when long, with control characters escaped."""
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in json.dumps(shown, ensure_ascii=False)
    )


# Comparing names is slow: a document with more mistakes, or more names, than this gets no hints for the rest.
_MAX_LOOKUPS = 200
_MAX_KNOWN = 2000


class Suggestions:
    """Finds the known name nearest to a wrong one; caches its answers."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, frozenset[str]], str] = {}

    def hint(self, name: str, known: Collection[str]) -> str:
        if len(known) > _MAX_KNOWN:
            return ""
        key = (name, frozenset(known))
        if key not in self._found:
            if len(self._found) >= _MAX_LOOKUPS:
                return ""
            self._found[key] = _find_nearest(*key)
        return self._found[key]


def _find_nearest(name: str, known: frozenset[str]) -> str:
    near = sorted(other for other in known if abs(len(other) - len(name)) <= 3)
    same = [other for other in near if other.lower() == name.lower()]
    best = same or difflib.get_close_matches(name, near, n=1, cutoff=0.6)
    return f"did you mean {quote(best[0])}?" if best else ""


# Of errors, and of warnings: more than anyone reads; keeps a hostile document from filling the memory.
MAX_FINDINGS = 500
# What tells of those that are not shown, and what it calls them.
LEFT_OUT = {"error": ("SB111", "findings"), "warning": ("SB217", "warnings")}


class Report:
    """The findings of a definition. ``document`` is the plain copy, whose order is the order of the findings.
    ``program``: of a machine without errors, built when its size is checked. ``embedded``: the embedded machines
    with their own reports, in publish order."""

    def __init__(self) -> None:
        self.document: Any = None
        self.program: dict[str, Any] | None = None
        self.embedded: list[tuple[Machine, Report]] = []
        self.suggestions = Suggestions()
        self._found: list[tuple[Path, Finding]] = []
        self._later: set[int] = set()  # ids of findings
        self._shown: Counter[tuple[str, bool]] = Counter()
        self._left_out: Counter[str] = Counter()

    def _is_full(self, code: str, later: bool = False) -> bool:
        """Tell whether a finding is only counted. Errors, warnings and errors of later rules are limited separately,
        so that none hides another kind."""
        severity = get_severity(code)
        if self._shown[severity, later] < MAX_FINDINGS:
            return False
        self._left_out[severity] += 1
        return True

    def add(self, code: str, path: Path, message: str, hint: str = "", *, later: bool = False) -> None:
        """Add a finding. ``later``: an error that an earlier release let pass. It stops publishing; a definition
        published before still runs, since the engine refuses the fault when it happens."""
        if self._is_full(code, later):
            return
        found = make_finding(code, render(path), message, hint)
        self._shown[found.severity, later] += 1
        self._found.append((path, found))
        if later:
            self._later.add(id(found))

    def add_unknown(
        self, code: str, path: Path, what: str, name: str, known: Collection[str], otherwise: str = ""
    ) -> None:
        """Add a finding about an unknown name: ``no state "Actve"; did you mean "Active"?``."""
        if not self._is_full(code):  # a suggestion costs more than all the rest
            self.add(code, path, f"no {what} {quote(name)}", self.suggestions.hint(name, known) or otherwise)

    def absorb(self, other: Report, path: Path) -> None:
        """Add the findings of a part of the document that was read on its own."""
        for inner, finding in other._found:
            later = id(finding) in other._later
            self.add(finding.code, (*path, *inner), finding.message, finding.hint, later=later)
        self._left_out += other._left_out

    @property
    def has_errors(self) -> bool:
        return any(finding.is_error for _, finding in self._found)

    @property
    def has_old_errors(self) -> bool:
        """Tell whether there is an error that no release ever let pass."""
        return any(finding.is_error and id(finding) not in self._later for _, finding in self._found)

    def holds(self, *codes: str) -> bool:
        """Tell whether one of these codes was found already."""
        return any(finding.code in codes for _, finding in self._found)

    def findings(self) -> list[Finding]:
        order = _Order(self.document)
        found = [finding for _, finding in sorted(self._found, key=lambda entry: order.of(entry[0]))]
        for severity, count in sorted(self._left_out.items()):
            code, them = LEFT_OUT[severity]
            more = f"{count} more {them} are not shown"
            found.append(make_finding(code, "", more, "correct these first"))
        return found


class _Order:
    """Turns paths into sort keys: the position of every part among its siblings."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._positions: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        key: list[int] = []
        at = self._document
        for part in path:
            if isinstance(part, int):
                key.append(part)
                at = at[part] if isinstance(at, list) and part < len(at) else None
            elif isinstance(at, dict) and part in at:
                key.append(self._number_keys(at)[part])
                at = at[part]
            else:
                break
        return tuple(key)

    def _number_keys(self, mapping: dict[str, Any]) -> dict[str, int]:
        if id(mapping) not in self._positions:
            self._positions[id(mapping)] = {key: index for index, key in enumerate(mapping)}
        return self._positions[id(mapping)]
