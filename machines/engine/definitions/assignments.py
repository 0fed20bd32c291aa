"""Reports values whose type cannot fit: text set to an integer field, a number compared with text."""

from __future__ import annotations

from .inference import LIST, NULL, TEXT, Complain, Inference, Types, impossible, in_words
from .model import Action, Machine, flat
from .path import Path
from .references import Payloads, PayloadTypes, spots
from .report import Report
from .types import in_words as declared_words


def review(machine: Machine, report: Report) -> None:
    data = {field.name: field.types for field in machine.fields.values()}
    for spot in spots(machine):
        if not spot.expression.problems:
            Inference(data, spot.payload, _complain_at(spot.path, report)).types(spot.expression.tree)
    payloads = Payloads(machine)
    for action in flat(machine.start.actions if machine.root is None else ()):
        _check(action, data, None, report)
    for state in machine.states.values():
        for invoke in state.invokes:
            _check_location(invoke.idlocation, (*invoke.path, "idlocation"), data, report)
        for action in flat(state.own_actions):
            _check(action, data, None, report)
        for transition in state.all_transitions:
            for action in flat(transition.actions):
                _check(action, data, payloads.of(transition), report)


def _check_location(name: str, path: Path, data: PayloadTypes, report: Report) -> None:
    """Where an id is kept: ids are text."""
    wanted = data.get(name)
    if wanted is not None and "any" not in wanted and impossible(TEXT, frozenset(wanted)):
        report.add("SB112", path, f'"{name}" is {declared_words(wanted)}, an id is string')


def _complain_at(path: Path, report: Report) -> Complain:
    return lambda code, message: report.add(code, path, message)


def _check(action: Action, data: PayloadTypes, payload: PayloadTypes | None, report: Report) -> None:
    _check_location(action.sending.idlocation if action.sending else "", action.path, data, report)
    wanted = data.get(action.name)
    if action.verb not in ("set", "append") or wanted is None or "any" in wanted or action.value is None:
        return
    if any(expression.problems for _, expression in action.value.parts):
        return
    if action.verb == "append":
        if impossible(LIST, frozenset(wanted)):
            report.add(
                "SB112", action.path, f'"{action.name}" is {declared_words(wanted)}: only an array can be appended to'
            )
        return
    found = Inference(data, payload, lambda code, message: None).types(action.value.tree)
    if _misfit(found, wanted):
        hint = f'write {{"unset": "{action.name}"}}' if found == NULL else ""
        report.add(
            "SB112", action.path, f'"{action.name}" is {declared_words(wanted)}, the value {in_words(found)}', hint
        )


def _misfit(found: Types, wanted: tuple[str, ...]) -> bool:
    """A fraction written out does not fit an integer; a calculation may come out whole."""
    if found is None:
        return False
    if found == frozenset(["number"]):
        return not {"number"} & set(wanted)
    return impossible(found, frozenset(wanted))
