"""The state that all readers of one document share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from machines.formats.javascript import changes, scripts, translator
from machines.formats.javascript.code import ABSENT, SUM, Code
from machines.formats.javascript.parsing import Node, Script, SyntaxProblem, parse_expression
from machines.formats.javascript.scope import Action, Fields, Scope
from machines.formats.report import Report
from machines.formats.scxml.elements import OURS, Element

from .library import Library
from .survey import Survey

EMPTY = object()


@dataclass(slots=True)
class Chart:
    """One document that is being read. ``late``: its data is bound when the state around it is entered."""

    root: Element
    id: str
    survey: Survey
    scope: Scope
    library: Library
    late: bool = False
    doubled: int = 0  # the loops around the current element that are written twice

    @property
    def report(self) -> Report:
        return self.scope.report

    @property
    def fields(self) -> Fields:
        return self.scope.fields

    def refuse(self, element: Element, message: str, attribute: str = "", hint: str = "", code: str = "SB144") -> None:
        """Report an error. ``code``: by default, that the document is not valid."""
        self.report.add(code, partial(element.where, attribute), message, hint)

    def refuse_change(self, element: Element, attribute: str) -> None:
        message = "changing a variable here cannot be translated"
        self.refuse(element, message, attribute, "change it in a statement of its own", code="SB145")

    def warn(self, element: Element, message: str, attribute: str = "") -> None:
        self.report.add("SB224", partial(element.where, attribute), message)

    def parse(self, element: Element, attribute: str) -> tuple[Script, Node] | SyntaxProblem:
        text = element.get(attribute) or ""
        try:
            return parse_expression(text, lambda offset: element.where(attribute))
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
        return parsed_text(element.text)

    def machine_name(self, name: str | None) -> Code:
        """Return the full name of an embedded machine, as an expression."""
        return ABSENT if name is None else Code(f"instance.machine + '.{name}'", SUM)


def more(chart: Chart, element: Element, *keys: str) -> dict[str, Any]:
    """Read properties that SCXML does not have, as JSON: ``<sb:more>{"description": ...}</sb:more>``."""
    result: dict[str, Any] = {}
    for child in element.children:
        if child.space == OURS and child.name == "more":
            found = parsed_text(child.text)
            if not isinstance(found, dict) or not set(found) <= set(keys):
                chart.refuse(child, f"an object with {', '.join(keys)} was expected", code="SB104")
            else:
                result |= found
    return result


def parsed_text(text: str) -> Any:
    """Parse JSON, or return the text with its white space made single spaces (B.2.8.1 of the recommendation)."""
    if not text.strip():
        return EMPTY
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return " ".join(text.split())


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
