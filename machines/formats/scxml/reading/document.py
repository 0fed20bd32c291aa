"""Reads a whole document, again until the kinds of its variables no longer change: see ``javascript.code``."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding
from machines.formats.javascript.code import ANY, Kinds
from machines.formats.javascript.scope import Fields, Scope
from machines.formats.scxml.elements import MACHINE_KEYS, OURS, Element, parse
from machines.formats.text import Report

from . import states
from .chart import Chart, Library, more
from .survey import Survey, survey

MODELS = ("ecmascript", "javascript", "null", "")
MAX_PASSES = 8  # kinds only grow, and there are six of them
_ROOM = 12  # characters of a machine's name that embedded machines may need


def read(text: str, base: Path | str | None = None) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the definition, and findings about what it says differently.

    ``base``: the document's file or folder, to find the files that it names.
    """
    folder = Path(base) if base is not None else None
    stem = ""
    if folder is not None and folder.is_file():
        stem, folder = folder.stem, folder.parent
    root = parse(text)
    if isinstance(root, Finding):
        return None, [root]
    report = Report()
    if not root.is_scxml("scxml"):
        report.add("SB144", root.locate, f"not an SCXML document: its root is <{root.name[:60]}>", "write <scxml>")
        return None, report.findings
    id = re.sub(r"[^A-Za-z0-9_.-]+", "_", root.get("name") or stem)[: limits.MAX_NAME - _ROOM].lstrip("0123456789.-")
    id = id or "machine"
    library = Library(folder, lambda inner, below, name: _read(inner, below, name, report, inner_=True), id)
    definition, _ = _read(root, library, id, report)
    return definition, report.findings


def _read(
    root: Element, library: Library, id: str, report: Report, *, inner_: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a definition, and the variables that a parent may set, with their fields."""
    model = root.get("datamodel") or ""
    if model not in MODELS:
        report.add(
            "SB141",
            partial(root.locate, "datamodel"),
            f"the data model {model[:40]!r} cannot be read",
            "use ecmascript",
        )
    start: dict[str, Kinds] = {}
    found = _survey(root, library, report)
    for left in range(MAX_PASSES, -1, -1):
        chart = _chart(root, library, id, found, report, start)
        states.declare(chart, open_=inner_)
        definition = _definition(chart)
        if chart.fields.kinds == start:
            break
        start = dict(chart.fields.kinds) if left > 1 else dict.fromkeys(chart.fields.kinds, ANY)
    return definition, {name: chart.fields.names[name] for name in states.at_the_top(chart)}


def _survey(root: Element, library: Library, report: Report) -> Survey:
    """Survey the document, with the scripts that have files of their own."""
    blank = Chart(root, "", Survey(root), Scope(report, Fields(), {}, {}, ""), library)
    texts: dict[Element, str] = {}
    for element in _scripts(root):
        source = element.get("src")
        if source is not None:
            path = library.path(blank, element, "src", source)
            texts[element] = (library.text(blank, element, "src", path) if path is not None else None) or ""
    return survey(root, library.machine, report, texts)


def _scripts(element: Element) -> list[Element]:
    found = [element] if element.is_scxml("script") else []
    return found + [inner for child in element.children if not child.is_scxml("scxml") for inner in _scripts(child)]


def _chart(root: Element, library: Library, id: str, found: Survey, report: Report, start: dict[str, Kinds]) -> Chart:
    testable = {id: name for id, name in found.by_id.items() if name not in found.histories}
    scope = Scope(report, Fields(start), found.functions, testable, root.get("name") or id)
    return Chart(root, id, found, scope, library, late=root.get("binding") == "late")


def _bring_along(chart: Chart) -> None:
    """Embed the machines that the document contains by name, for an <invoke> that calculates which one it starts."""
    for element in chart.root.children:
        name = element.get("name") or ""
        if element.space == OURS and element.name == "machine" and limits.check_machine_name(name) is None:
            inner = element.first("scxml")
            if inner is not None:
                chart.library.embed(chart, inner, exact=name)


def _definition(chart: Chart) -> dict[str, Any]:
    first = states.first_values(chart)
    for script in chart.root.all("script"):
        actions = chart.program(script)
        if actions:
            first.append({"block": actions})
    _bring_along(chart)
    body = chart.survey.body
    initial = states.read_initial(chart, body, first)
    doing = states.behaviour(chart, body)
    inside = states.read_states(chart, body)
    if not inside:
        chart.report.add("SB144", chart.root.locate, "the document has no states")
    definition: dict[str, Any] = {"id": chart.id}
    if initial is not None:
        definition["initial"] = initial
    definition |= {"type": "parallel"} if body.name == "parallel" else {}
    definition["errors"] = chart.root.get("errors", OURS) or "raise"
    if chart.fields.names:
        definition["context"] = chart.fields.context()
    definition |= doing
    definition["states"] = inside
    definition |= more(chart, chart.root, *MACHINE_KEYS)
    if chart.library.machines:
        definition["machines"] = chart.library.machines
    return definition
