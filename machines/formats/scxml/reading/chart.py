"""The state that all readers of one document share, and the documents that it embeds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding
from machines.formats.javascript import changes, scripts, translator
from machines.formats.javascript.code import ABSENT, SUM, Code
from machines.formats.javascript.parsing import Node, Script, SyntaxProblem, parse_expression
from machines.formats.javascript.scope import Action, Fields, Scope
from machines.formats.scxml.elements import OURS, Element, parse
from machines.formats.text import Names, Report, decode

from .survey import Survey

EMPTY = object()
MAX_NESTED = 5  # nested documents
MAX_MACHINES = 50  # that one document embeds
MAX_STEM = 12  # characters: names of embedded machines are joined, and must stay within MAX_NAME
Read = Callable[[Element, "Library", str], tuple[dict[str, Any], dict[str, str]]]


@dataclass(slots=True)
class Chart:
    """One document that is being read. ``late``: its data is bound when the state around it is entered."""

    root: Element
    id: str
    survey: Survey
    scope: Scope
    library: Library
    late: bool = False

    @property
    def report(self) -> Report:
        return self.scope.report

    @property
    def fields(self) -> Fields:
        return self.scope.fields

    def refuse(self, element: Element, message: str, attribute: str = "", hint: str = "", code: str = "SB144") -> None:
        """Report an error. ``code``: by default, that the document is not valid."""
        self.report.add(code, partial(element.locate, attribute), message, hint)

    def refuse_change(self, element: Element, attribute: str) -> None:
        message = "changing a variable here cannot be translated"
        self.refuse(element, message, attribute, "change it in a statement of its own", code="SB145")

    def warn(self, element: Element, message: str, attribute: str = "") -> None:
        self.report.add("SB224", partial(element.locate, attribute), message)

    def parse(self, element: Element, attribute: str) -> tuple[Script, Node] | SyntaxProblem:
        text = element.get(attribute) or ""
        try:
            return parse_expression(text, lambda offset: element.locate(attribute))
        except SyntaxProblem as problem:
            return problem

    def code(self, element: Element, attribute: str) -> Code:
        """Return the code of an expression that must not change anything."""
        found, effects = self.code_and_effects(element, attribute)
        if effects:
            self.refuse_change(element, attribute)
        return found

    def code_and_effects(
        self, element: Element, attribute: str, *, condition: bool = False
    ) -> tuple[Code, list[Action]]:
        parsed = self.parse(element, attribute)
        if isinstance(parsed, SyntaxProblem):
            text = element.get(attribute) or ""
            self.warn(element, f"this fails whenever it runs: {parsed.message}", attribute)
            return translator.fail(parsed, text), []
        return translator.translate(self.scope, *parsed, condition=condition)

    def guard(self, element: Element, attribute: str = "cond") -> str | None:
        """Return a condition as an expression; None where there is none or it is ``true``."""
        found, effects = self.guard_and_effects(element, attribute)
        if effects:
            self.refuse_change(element, attribute)
        return found

    def guard_and_effects(self, element: Element, attribute: str = "cond") -> tuple[str | None, list[Action]]:
        if element.get(attribute) is None:
            return None, []
        found, effects = self.code_and_effects(element, attribute, condition=True)
        return (None if found.text == "True" else found.text), effects

    def location(self, element: Element, attribute: str, value: Code) -> Action:
        """Return the action that assigns a value to the place that an attribute names."""
        parsed = self.parse(element, attribute)
        if isinstance(parsed, SyntaxProblem):
            self.warn(element, f"this fails whenever it runs: {parsed.message}", attribute)
            return changes.failing(translator.fail(parsed, element.get(attribute) or ""))
        script, node = parsed
        return changes.assign_text(translator.Translator(self.scope, script), node, value)

    def field(self, element: Element, attribute: str) -> str | None:
        """Return the data field that an attribute names. It must be a variable, not a part of one."""
        name = element.get(attribute) or ""
        found = self.scope.variable(name.strip())
        return found.text if found is not None else None

    def program(self, element: Element) -> list[Action]:
        """Return the actions of a <script>."""
        found = self.survey.programs[element]
        if isinstance(found, SyntaxProblem):
            self.warn(element, f"this fails whenever it runs: {found.message}")
            return [changes.failing(f"{found.message}: {' '.join(element.text.split())[:60]}")]
        return scripts.actions(self.scope, *found)

    def inline(self, element: Element) -> Any:
        """Return what an element contains: EMPTY, a Code, or a JSON value."""
        inner = element.first("scxml")
        if inner is not None:
            return self.machine_name(self.library.embed(self, inner))
        if element.children:
            self.refuse(element.children[0], "XML as data cannot be kept", code="SB143")
            return EMPTY
        return parse_text(element.text)

    def machine_name(self, name: str | None) -> Code:
        """Return the full name of an embedded machine, as an expression."""
        return ABSENT if name is None else Code(f"instance.machine + '.{name}'", SUM)


def more(chart: Chart, element: Element, *keys: str) -> dict[str, Any]:
    """Read properties that SCXML does not have, as JSON: ``<sb:more>{"description": ...}</sb:more>``."""
    result: dict[str, Any] = {}
    for child in element.children:
        if child.space == OURS and child.name == "more":
            found = object_of(child)
            if found is None or not set(found) <= set(keys):
                chart.refuse(child, f"an object with {', '.join(keys)} was expected", code="SB104")
            else:
                result |= found
    return result


def parse_text(text: str) -> Any:
    """Parse JSON, or return the text with its white space made single spaces (B.2.8.1 of the recommendation)."""
    if not text.strip():
        return EMPTY
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return " ".join(text.split())


def object_of(element: Element) -> dict[str, Any] | None:
    """Return the JSON object that an element of ours holds; None for anything else."""
    found = parse_text(element.text)
    return found if isinstance(found, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def value_of(found: Any) -> Any:
    """Return a value as actions and outputs take it: texts in it are expressions."""
    if isinstance(found, Code):
        return found.text
    if isinstance(found, str):
        return repr(found)
    if isinstance(found, list):
        return [value_of(item) for item in found]
    if isinstance(found, dict):
        return {key: value_of(item) for key, item in found.items()}
    return None if found is EMPTY else found


@dataclass(frozen=True, slots=True)
class EmbeddedMachine:
    """A machine inside another one. ``inputs``: its variables that a parent may set, and their fields."""

    name: str
    definition: dict[str, Any]
    inputs: dict[str, str]


@dataclass(slots=True)
class Library:
    """``read`` turns an inner document into a definition; ``above`` are the files being read, to detect cycles.

    ``machine`` is the full name of the machine that contains the others.
    """

    base: Path | None
    read: Read
    machine: str
    depth: int = 0
    above: tuple[Path, ...] = ()
    found: dict[object, EmbeddedMachine] = field(default_factory=dict)

    @property
    def machines(self) -> dict[str, Any]:
        return {one.name: one.definition for one in self.found.values()}

    def embed(self, chart: Chart, inner: Element, stem: str = "", *, exact: str = "") -> str | None:
        """Embed an inner <scxml> and return the name of its machine: ``exact``, or one like its own name."""
        return self._add(chart, inner, inner, inner.get("name") or stem or "child", self.above, exact)

    def embed_file(self, chart: Chart, element: Element, attribute: str, named: str) -> str | None:
        path = self.path(chart, element, attribute, named)
        if path is None:
            return None
        if path in self.above:
            chart.refuse(
                element, "a document that invokes itself cannot be published with itself", attribute, code="SB141"
            )
            return None
        text = self.text(chart, element, attribute, path)
        root = parse(text, path.name) if text is not None else None
        if isinstance(root, Finding):
            chart.report.extend([root])
            return None
        if root is not None and not root.is_scxml("scxml"):
            chart.refuse(element, f"{path.name} is no SCXML document", attribute)
            return None
        return self._add(chart, path, root, path.stem, (*self.above, path)) if root is not None else None

    def _add(
        self, chart: Chart, key: object, root: Element, stem: str, above: tuple[Path, ...], exact: str = ""
    ) -> str | None:
        if key in self.found:
            return self.found[key].name
        if self.depth >= MAX_NESTED or len(self.found) >= MAX_MACHINES:
            message = f"more than {MAX_NESTED} documents inside one another, or {MAX_MACHINES} in one"
            chart.refuse(root, message, code="SB111")
            return None
        name = exact if exact and exact not in self.machines else self._free(stem)
        inside = Library(self.base, self.read, f"{self.machine}.{name}", self.depth + 1, above)
        self.found[key] = EmbeddedMachine(name, {}, {})  # reserves the name while the inner document is read
        definition, inputs = self.read(root, inside, name)
        self.found[key] = EmbeddedMachine(name, definition, inputs)
        return name

    def inputs(self, name: str) -> dict[str, str]:
        return next((one.inputs for one in self.found.values() if one.name == name), {})

    def _free(self, stem: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", stem)[:MAX_STEM].strip("_") or "child"
        return Names(self.machines).take(plain, "")

    def path(self, chart: Chart, element: Element, attribute: str, named: str) -> Path | None:
        """Return the path of a file below the base. Nothing is fetched from anywhere else."""
        relative = named.strip().removeprefix("file:").removeprefix("//")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", relative) or relative.startswith("/"):
            chart.refuse(
                element, f"{named[:80]!r} is not fetched", attribute, "name a file next to the document", "SB141"
            )
            return None
        if self.base is None:
            hint = "say where the document lies: load(..., base=folder)"
            chart.refuse(element, f"the file {named[:80]!r} cannot be found without a folder", attribute, hint, "SB141")
            return None
        path = (self.base / relative).resolve()
        if not path.is_relative_to(self.base.resolve()):
            chart.refuse(element, f"{named[:80]!r} lies outside the document's folder", attribute, code="SB141")
            return None
        return path

    def missing(self, chart: Chart, element: Element, attribute: str, path: Path) -> str:
        """Return why a file is not available when the machine runs; an empty text if it exists."""
        if path.is_file():
            return ""
        message = f"there is no file {path.name}"
        chart.warn(element, f"this fails whenever it runs: {message}", attribute)
        return message

    def text(self, chart: Chart, element: Element, attribute: str, path: Path) -> str | None:
        try:
            if path.stat().st_size > limits.MAX_DEFINITION:
                chart.refuse(
                    element, f"{path.name} is larger than {limits.MAX_DEFINITION} bytes", attribute, code="SB111"
                )
                return None
            decoded = decode(path.read_bytes())
        except OSError as error:
            chart.refuse(element, f"{path.name} cannot be read: {error.strerror}", attribute)
            return None
        if isinstance(decoded, Finding):
            chart.refuse(element, f"{path.name}: {decoded.message}", attribute)
            return None
        return decoded
