"""Checks what is done with encrypted fields: Redis has only their ciphertext, so a value is passed on whole, asked for
null, or, where the field is searchable, compared with another value of the same field."""

from __future__ import annotations

from collections.abc import Iterator

from machines.engine.definitions.fields import SEARCHABLE
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import MISSING, Action, Field, Machine
from machines.engine.expressions import Node, list_parts

from .references import find_spots

HINT = "copy it whole into an encrypted field, an input or the data of an event; let a handler work with the value"
PASSED = ("enqueue", "raise", "send", "emit", "log")
"""Actions whose value may hold ciphertexts. A ``set`` is checked by itself."""


def review(machine: Machine, report: Report) -> None:
    fields = machine.encrypted
    if not fields:
        return
    _check_declarations(machine, fields, report)
    passed = {id(expression) for expression in _list_passed(machine)}
    for spot in find_spots(machine):
        if not spot.expression.problems:
            _check_tree(spot.expression.tree, id(spot.expression) in passed, fields, spot.path, report)
    for action in machine.actions:
        _check_writing(action, fields, report)
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.idlocation in fields:
                _report(report, invoke.path, f"an id is written to {quote(invoke.idlocation)}", "use another field")


def _check_declarations(machine: Machine, fields: dict[str, Field], report: Report) -> None:
    declared = [
        *machine.fields.values(),
        *(f for event in machine.events.values() for f in (event.fields or {}).values()),
    ]
    for field in declared:
        known = fields.get(field.name)
        if field.encrypted and field.initial is not MISSING and field.initial is not None:
            _report(report, field.path, "its first value stands readable in the definition", "leave the default out")
        if known and (field.encrypted, field.types) != (known.encrypted, known.types):
            what = f"{quote(field.name)} is declared elsewhere with another type or encryption"
            _report(report, field.path, what, "declare it alike, or rename one of them")
    for name in machine.index:
        if name in fields and fields[name].encrypted != SEARCHABLE:
            _report(report, ("index",), f"{quote(name)} is indexed", 'declare it "encrypted": "searchable"')


def _list_passed(machine: Machine) -> Iterator[object]:
    """List the expressions whose value goes on as it is."""
    values = [machine.output]
    for state in machine.states.values():
        values += [state.output, *(invoke.input for invoke in state.invokes)]
    values += [action.value for action in machine.actions if action.verb in ("set", *PASSED)]
    for value in values:
        yield from (expression for _, expression in value.parts) if value else ()


def _check_tree(node: Node, whole: bool, fields: dict[str, Field], path: Path, report: Report) -> None:
    name = _name_encrypted(node, fields)
    if name:
        if not whole:
            _report(report, path, f"{quote(name)} is read here", HINT)
        return
    if node[0] == "cmp":
        _check_comparison(node, fields, path, report)
        return
    for part in list_parts(node):
        _check_tree(part, whole and node[0] in ("obj", "list"), fields, path, report)


def _check_comparison(node: Node, fields: dict[str, Field], path: Path, report: Report) -> None:
    left = node[1]
    for operator, right in node[2:]:
        names = [_name_encrypted(side, fields) for side in (left, right)]
        for side, name in zip((left, right), names, strict=True):
            if not name:
                _check_tree(side, False, fields, path, report)
        alike = names[0] == names[1] and fields[names[0]].encrypted == SEARCHABLE if names[0] else False
        if any(names) and (operator not in ("==", "!=") or not (alike or ["null"] in (left, right))):
            hint = "only null, and for a searchable field the same field of an event, can be compared with =="
            _report(report, path, f"{quote(names[0] or names[1])} is compared here", hint)
        left = right


def _check_writing(action: Action, fields: dict[str, Field], report: Report) -> None:
    tree = action.value.tree if action.value else ["null"]
    source = _name_encrypted(tree, fields)
    written = [name for name in action.fields if name in fields]
    if action.verb == "set" and source and action.name not in fields:
        _report(report, action.path, f"{quote(source)} is copied to {quote(action.name)}, which is not encrypted", HINT)
    elif action.verb == "set" and written and tree != ["null"]:
        searchable = fields[action.name].encrypted == SEARCHABLE
        if (
            not source
            or (searchable and source != action.name)
            or (not searchable and action.name != source and fields[action.name].types != fields[source].types)
        ):
            hint = f"set it from event.{action.name}, or from a result's field of that name"
            _report(report, action.path, f"{quote(action.name)} is set to something else", hint)
    elif action.verb != "set" and action.verb != "unset" and written:
        _report(report, action.path, f"{quote(written[0])} is written here", "only set and unset write it")


def _name_encrypted(node: Node, fields: dict[str, Field]) -> str:
    """Return the encrypted field that a node reads: of the data, or what has its name in a payload; "" for none."""
    if node[0] == "data":
        return node[1] if node[1] in fields else ""
    if node[0] == "get" and node[2][0] == "str" and node[2][1] in fields:
        return str(node[2][1])
    return ""


def _report(report: Report, path: Path, what: str, hint: str) -> None:
    report.add("SB128", path, f"{what}: the field is stored encrypted" if "encrypt" not in what else what, hint)
