"""Reads <datamodel>: the variables of a document and how they get their first values."""

from __future__ import annotations

from functools import partial
from typing import Any

from machines.formats.javascript import code, literals
from machines.formats.javascript.code import Code
from machines.formats.javascript.parsing import SyntaxProblem
from machines.formats.javascript.scope import UNSET, Action
from machines.formats.scxml.elements import OURS, Element

from .chart import EMPTY, Chart, parsed_text, value_of


def declare(chart: Chart, *, open_: bool) -> None:
    """Declare every variable as a data field.

    ``open_``: a parent may give any value to the variables at the top level.
    """
    top = set(at_the_top(chart))
    values = {
        element.get("id"): _plain(chart, element) for element in chart.survey.data if _is_early(chart, element, top)
    }
    for name, element in chart.survey.variables.items():
        if chart.fields.declare(name, values.get(name, UNSET), element.get("name", OURS) or ""):
            field = chart.fields.names[name]
            where = partial(element.where, "id" if element.is_scxml("data") else "")
            chart.report.add("SB223", where, f"the variable {name[:60]} is called {field} here")
    for element in chart.survey.data:
        schema = parsed_text(element.get("schema", OURS) or "")
        if isinstance(schema, dict) and element.get("id") in chart.fields.names:
            chart.fields.schemas[chart.fields.names[element.get("id") or ""]] = schema
    if open_:
        for name in top:
            chart.fields.receive_anything(name)


def at_the_top(chart: Chart) -> list[str]:
    """Return the variables that a parent may set: those of the document's own <datamodel>."""
    return [
        id
        for model in chart.root.all("datamodel")
        for element in model.all("data")
        if (id := element.get("id")) in chart.survey.variables
    ]


def _is_early(chart: Chart, element: Element, top: set[str]) -> bool:
    return element.get("id") in chart.survey.variables and (not chart.late or element.get("id") in top)


def _plain(chart: Chart, element: Element) -> Any:
    """Return a first value that is a constant; UNSET if it must be calculated, or if there is none."""
    if element.get("src") is not None:
        return UNSET
    if element.get("expr") is not None:
        parsed = chart.parse(element, "expr")
        if isinstance(parsed, SyntaxProblem):
            return UNSET
        found = literals.plain(*parsed)
        return UNSET if found is literals.NOT_PLAIN or found is literals.UNDEFINED else found
    if element.children:
        return UNSET
    found = chart.inline(element)
    return UNSET if found is EMPTY else found


def first_values(chart: Chart) -> list[Action]:
    """Return the actions that calculate first values before the first state is entered.

    Each has a block of its own, in document order.
    """
    top = set(at_the_top(chart))
    blocks = []
    for element in chart.survey.data:
        if _is_early(chart, element, top) and _plain(chart, element) is UNSET:
            action = _set(chart, element)
            if action is not None:
                blocks.append(
                    {"block": [_unless_given(chart, element, action) if element.get("id") in top else action]}
                )
    return blocks


def _unless_given(chart: Chart, element: Element, action: Action) -> Action:
    """Make an assignment apply only if no value was given when the machine was started."""
    field = chart.fields.names[element.get("id") or ""]
    return {"if": [{"guard": f"{field} == None", "do": [action]}]}


def _set(chart: Chart, element: Element) -> Action | None:
    """Return the assignment of a first value."""
    name = element.get("id") or ""
    if element.get("expr") is not None:
        value, effects = chart.code_and_effects(element, "expr")
        if effects:
            chart.refuse_change(element, "expr")
    else:
        found = _from_file(chart, element) if element.get("src") is not None else chart.inline(element)
        if found is EMPTY:
            return None
        if not isinstance(found, Code):
            chart.fields.receive(name, code.literal(found).kinds)
            return {"set": {chart.fields.names[name]: value_of(found)}}
        value = found
    if value.is_none:
        return None
    chart.fields.receive(name, value.kinds)
    return {"set": {chart.fields.names[name]: value.text}}


def _from_file(chart: Chart, element: Element) -> Any:
    path = chart.library.path(chart, element, "src", element.get("src") or "")
    if path is not None and (why := chart.library.missing(chart, element, "src", path)):
        return code.fails(why)
    text = chart.library.text(chart, element, "src", path) if path is not None else None
    if text is None:
        return EMPTY
    if text.lstrip().startswith("<"):
        chart.refuse(element, "XML as data cannot be kept", "src", code="SB143")
        return EMPTY
    return parsed_text(text)


def late_values(chart: Chart, state: Element) -> list[Action]:
    """Return what is done when a state is entered for the first time, with late binding."""
    if not chart.late or state is chart.root:
        return []
    own = [e for model in state.all("datamodel") for e in model.all("data") if e.get("id") in chart.survey.variables]
    actions = [action for element in own if (action := _set(chart, element)) is not None]
    if not actions:
        return []
    flag = _flag(chart, state)
    blocks: list[Action] = [{"block": [action]} for action in actions]
    return [{"if": [{"guard": f"{flag} == None", "do": [{"set": {flag: True}}, *blocks]}]}]


def _flag(chart: Chart, state: Element) -> str:
    """Return the field that records whether the state's data is bound."""
    name = f"bound_{chart.survey.names[state]}"
    chart.fields.declare(name)
    return chart.fields.names[name]
