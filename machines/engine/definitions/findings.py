"""The findings of a definition, collected in a report. Each kind has a code, which never changes once published."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .model import Machine

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding. ``title`` says what is wrong, ``advice`` what to do about it; both are for the reference
    page."""

    code: str
    title: str
    advice: str

    @property
    def severity(self) -> Severity:
        return "error" if self.code < "SB2" else "warning"


_ALL = [
    Code("SB101", "a state is named that does not exist", "correct the name, or add the state"),
    Code("SB102", "a data field is named that `context` does not declare", "correct the name, or declare the field"),
    Code("SB103", "`event.<name>` is no field of that event's payload", "correct the name, or declare the field"),
    Code(
        "SB104",
        "a value has the wrong shape: text where an object is needed, and the like",
        "see the key in the definition reference",
    ),
    Code("SB105", "a key is not known here", "correct it; a misspelt `guard` would otherwise be no guard at all"),
    Code("SB106", "a required key is missing", "add it"),
    Code("SB107", "a name is not allowed", "see the table of names"),
    Code("SB108", "the feature is not in this release yet", "leave it out, or wait for the release that has it"),
    Code("SB109", "an expression cannot be read, or uses what expressions do not have", "see the expression language"),
    Code("SB110", "a value is not plain JSON", "use objects, arrays, text, finite numbers, true, false and null"),
    Code("SB111", "something is larger or deeper than its limit", "see the table of limits"),
    Code("SB112", "a value does not fit the type its field is declared with", "change the value, or the type"),
    Code("SB113", "a duration cannot be read", "write a number and a unit: 500ms, 30s, 5m, 2h, 1d"),
    Code("SB114", "a number is out of its range", "stay within the range the message names"),
    Code("SB115", "two things have the same name, or names that cannot be told apart", "rename one of them"),
    Code("SB116", "an action is not one of the verbs, or several at once", "write one verb for each action"),
    Code("SB117", "a final state has a way out or work to do", "remove it, or make the state an ordinary one"),
    Code("SB118", "`always` transitions form an endless cycle", "give one of them a guard that fails at some point"),
    Code("SB119", "a key stands where it has no meaning", "move it to where the hint says"),
    Code("SB120", "a function is not known, or called with the wrong arguments", "see the table of functions"),
    Code("SB121", "`instance` or `trigger` has no such fact", "see the table of names in expressions"),
    Code("SB122", "several targets cannot be active at once", "name one state for each region of a parallel state"),
    Code("SB123", "what is entered by default is not a state inside", "name a state that is"),
    Code("SB124", "a field is to be indexed whose values have no order", "declare it with a scalar type"),
    Code(
        "SB125",
        "approval names neither a repair, publish or migrate nor an event of the machine",
        "name a repair, publish, migrate, or fire: and an event it listens for",
    ),
    Code("SB126", "a schedule does not fit: its time, its zone, or what it does", "see the page of schedules"),
    Code(
        "SB127",
        "a name is reserved: a handler, a queue or a machine of the product",
        "choose another name; what the product does is asked for by its pages and services",
    ),
    Code(
        "SB128",
        "an encrypted field is read, computed, compared or indexed, or there is no codec for it",
        "pass the value on whole, declare the field as searchable, or set `CODEC`",
    ),
    Code("SB130", "the format is not known, or cannot be read yet", "use json or yaml"),
    Code("SB131", "the text is not well-formed", "correct it at the line and column named"),
    Code("SB132", "a key stands twice in one object", "remove one of them"),
    Code("SB133", "a number is not finite, or too large to be held exactly", "write a smaller number, or a text"),
    Code("SB134", "the text is not valid UTF-8, or holds NUL", "save the file as UTF-8"),
    Code(
        "SB135", "YAML is used beyond plain data: tags, anchors that repeat or loop, several documents", "write it out"
    ),
    Code("SB136", "a file cannot be read", "check that the file exists, and that this account may read it"),
    Code("SB137", "the format needs packages that are not installed", "install the extra that the message names"),
    Code("SB140", "a name stands for code that the text does not hold", "write the expression at the path named"),
    Code("SB141", "the format says something that machines cannot do here", "write it in another way, or leave it out"),
    Code("SB142", "an event processor other than SCXML's is named", "leave the type out, or let a handler do the work"),
    Code("SB143", "XML is used as a value", "write JSON, or text"),
    Code("SB144", "the document is not valid SCXML", "see the recommendation, https://www.w3.org/TR/scxml/"),
    Code("SB145", "ECMAScript that cannot be translated", "write it in other words; see what is read"),
    Code("SB201", "no transition leads to the state", "add one, or remove the state; only force() reaches it"),
    Code("SB202", "an instance cannot leave the state, and it is not final", 'add a way out, or `"type": "final"`'),
    Code("SB203", "a transition is never reached: one before it always holds", "put the guarded one first"),
    Code(
        "SB204", "a chain of guards has no last transition without one", "add one, if an event should never be refused"
    ),
    Code("SB205", "a key has no effect in this release", "keep it or leave it out; nothing depends on it"),
    Code("SB206", "a schema keyword is not checked in this release", "check it in a guard"),
    Code("SB207", "an event is declared and no state listens for it", "listen for it, or remove the declaration"),
    Code("SB208", "an event is raised and no state listens for it", "listen for it, or remove the raise"),
    Code("SB209", "the event a transition listens for never happens", "correct the invoke's id in the event's name"),
    Code("SB210", "a guard is always false, so its transition is never taken", "remove the transition"),
    Code("SB211", "these actions or transitions never run", "remove them"),
    Code("SB212", "the definition can be read in two ways", "write it as the hint says"),
    Code("SB213", "the two sides of == or != have types that are never equal", "convert one: str(x), number(x)"),
    Code("SB214", "an action cancels what is never sent", "correct the id, or remove the action"),
    Code("SB215", "a timer goes off without leading anywhere", "give it a target or actions, or another way out"),
    Code("SB216", "any machine may send to this one", "name the machines that do under `accepts`"),
    Code("SB217", "more warnings than are shown", "correct these first"),
    Code(
        "SB218",
        "the machine is published with another number of partitions",
        "run `manage.py machine repartition`, or leave the number out",
    ),
    Code("SB220", "an action is only a name, and became a message of that name", "write out the actions it stands for"),
    Code("SB221", "the text says something that has no meaning here; it was left out", "see whether you rely on it"),
    Code("SB222", "the format cannot carry this; it is missing from the text", "keep the definition itself as well"),
    Code("SB223", "a name is not allowed here, and was changed", "use the new name from now on"),
    Code("SB224", "something means a little more or less here than in the format", "see whether you rely on it"),
]
CODES: dict[str, Code] = {code.code: code for code in _ALL}


@dataclass(frozen=True, slots=True)
class Finding:
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

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self)

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.code} {self.path or 'definition'}: {self.message}{hint}"


def make_finding(code: str, path: str, message: str, hint: str = "") -> Finding:
    """Make a finding with the severity of its code."""
    return Finding(code, path, message, hint, CODES[code].severity)


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
            self._found[key] = _nearest(*key)
        return self._found[key]


def _nearest(name: str, known: frozenset[str]) -> str:
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
        severity = CODES[code].severity
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
                key.append(self._among(at)[part])
                at = at[part]
            else:
                break
        return tuple(key)

    def _among(self, mapping: dict[str, Any]) -> dict[str, int]:
        if id(mapping) not in self._positions:
            self._positions[id(mapping)] = {key: index for index, key in enumerate(mapping)}
        return self._positions[id(mapping)]
