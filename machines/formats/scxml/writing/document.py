"""Writes a whole document."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.findings import Finding
from machines.engine.definitions.model import MISSING, Field
from machines.engine.definitions.reading.document import read_document
from machines.engine.definitions.reading.embedded_machines import list_embedded
from machines.engine.errors import DefinitionError
from machines.formats.scxml.elements import MACHINE_KEYS, OURS, SCXML

from .context import Writing, compact, more
from .javascript import literal
from .markup import Tag, render
from .states import write_initial, write_state


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as SCXML. Raises DefinitionError for a definition that has errors."""
    machine, report = read_document(definition)
    if machine is None or report.has_errors:
        raise DefinitionError(report.findings())
    writing = Writing(machine, report.document, type(report)())
    writing.report.document = report.document
    root = _machine(writing)
    return render(root), writing.report.findings()


def _machine(writing: Writing, short: str = "") -> Tag:
    machine, document = writing.machine, writing.document
    _embed(writing)
    attributes: dict[str, str | None] = {
        "xmlns": SCXML,
        "xmlns:sb": OURS,
        "version": "1.0",
        "datamodel": "ecmascript",
        "name": short or machine.id,
    }
    if not machine.raises_errors:
        attributes["sb:errors"] = "refuse"
        writing.once("SB224", (), "an action that fails refuses the step; SCXML raises error.execution and goes on")
    root = Tag("scxml", attributes, more(_list_kept(writing)))
    if machine.fields:
        root.children.append(Tag("datamodel", children=[_data(writing, field) for field in machine.fields.values()]))
    tops = [state for state in machine.states.values() if state.parent is None]
    if machine.root is None:
        root.children += _initial(writing, root)
    root.children += [write_state(writing, state) for state in tops]
    for name in list_embedded(document):
        full = f"{machine.id}.{name}"
        if full in writing.embedded and full not in writing.used:
            writing.ours(("machines", name), "machine that is not written where it is invoked")
            root.children.append(Tag("sb:machine", {"name": name}, [writing.embedded[full]]))
    return root


def _initial(writing: Writing, root: Tag) -> list[Tag]:
    found = write_initial(writing, root, writing.machine.start)
    if found:
        message = "SCXML has no actions before the first state: <initial> stands where only Signalbox reads it"
        writing.once("SB224", ("initial",), message)
    return found


def _list_kept(writing: Writing) -> dict[str, Any]:
    found = {key: writing.document[key] for key in MACHINE_KEYS if key in writing.document}
    for key in found:
        writing.ours((key,), f'"{key}" of a machine')
    return found


def _data(writing: Writing, field: Field) -> Tag:
    id = writing.variables[field.name]
    attributes: dict[str, str | None] = {"id": id, "sb:name": None if id == field.name else field.name}
    if field.initial is not MISSING:
        attributes["expr"] = literal(field.initial)
    schema: dict[str, Any] = {}
    if "any" not in field.types:
        schema["type"] = field.types[0] if len(field.types) == 1 else list(field.types)
    if field.description:
        schema["description"] = field.description
    if schema:
        writing.ours(("context",), "types of data")
        attributes["sb:schema"] = compact(schema)
    return Tag("data", attributes)


def _embed(writing: Writing) -> None:
    """Embed the machines that this one contains, where it invokes them."""
    for name, inner in list_embedded(writing.document).items():
        full = f"{writing.machine.id}.{name}"
        machine, report = read_document(inner | {"id": full})
        if machine is None:
            continue
        inside = Writing(machine, report.document, type(report)())
        inside.report.document = report.document
        writing.embedded[full] = _machine(inside, name)
        writing.report.absorb(inside.report, ("machines", name))
