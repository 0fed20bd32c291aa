"""The form of a migration plan: a row for each state of the old versions, data expressions, policies."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import QueryDict

from dashboard.shared.version_view import VersionView
from machines.engine.definitions import FieldOutline
from machines.engine.limits import MAX_REASON
from machines.instances.forms import PageForm

STATE, AND, DATA = "state.", "and.", "data."  # before the name of a state or a field, in the names of inputs
NOWHERE = "-"  # the choice "no place"
MAX_EXPRESSION = 2_000  # characters

UNMAPPED = [
    ("refuse", "refuse: it stays, and is listed"),
    ("keep", "keep: it stays in its version"),
    ("suspend", "suspend: it stays in its version, suspended"),
]
TIMERS = [("entry", "from the entry of their state"), ("now", "from now")]
REMOVED = [("drop", "drop"), ("keep", "keep beside the data")]
SUSPENDED = [("move", "move, and stay suspended"), ("refuse", "refuse")]
ACTIONS = [("exit", "exit actions of the old states"), ("entry", "entry actions of the new states")]


class PlanForm(PageForm):
    """Policies and target of a plan. The rows of states and fields are read beside it, by ``read_choices``."""

    to = forms.TypedChoiceField(label="to version", coerce=int)
    sources = forms.TypedMultipleChoiceField(label="from versions", coerce=int, widget=forms.CheckboxSelectMultiple)
    unmapped = forms.ChoiceField(label="unmapped states", choices=UNMAPPED, initial="refuse")
    timers = forms.ChoiceField(label="timers without a counterpart run", choices=TIMERS, initial="entry")
    removed = forms.ChoiceField(label="removed data fields", choices=REMOVED, initial="drop")
    suspended = forms.ChoiceField(label="suspended instances", choices=SUSPENDED, initial="move")
    actions = forms.MultipleChoiceField(
        label="actions that run", choices=ACTIONS, required=False, widget=forms.CheckboxSelectMultiple
    )
    keep_undo = forms.CharField(label="keep what is needed to go back for", initial="7d", max_length=20)
    note = forms.CharField(label="note", required=False, max_length=MAX_REASON)

    def __init__(self, *args: Any, versions: Sequence[int], to: int, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="plan-%s", **kwargs)
        choices: Any = self.fields
        choices["to"].choices = [(number, f"version {number}") for number in versions]
        choices["sources"].choices = [(number, f"version {number}") for number in versions if number != to]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default policies, as a posted form would have them."""
        return {name: each.initial for name, each in cls.base_fields.items() if each.initial is not None}

    def options(self) -> dict[str, Any]:
        """Return the policies as ``Engine.plan`` takes them."""
        names = ("unmapped", "timers", "removed", "suspended", "actions", "keep_undo")
        return {name: self.cleaned_data[name] for name in names}


@dataclass(frozen=True, slots=True)
class Choices:
    """Holds what a person chose: ``states``, old state -> places, None for no place; ``data``, field -> expression."""

    states: dict[str, list[str] | None] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)


def read_choices(posted: QueryDict) -> Choices:
    """Read the rows of a posted form. Empty ones are left to the automatic mapping."""
    found = Choices()
    for name in posted:
        if name.startswith(STATE) and (value := posted.get(name, "")):
            state = name.removeprefix(STATE)
            second = posted.get(f"{AND}{state}", "")
            found.states[state] = None if value == NOWHERE else [value, second] if second else [value]
        elif name.startswith(DATA) and (text := posted.get(name, "").strip()):
            found.data[name.removeprefix(DATA)] = text[:MAX_EXPRESSION]
    return found


@dataclass(frozen=True, slots=True)
class StateRow:
    """Holds one state of the old versions. ``targets``: where the plan puts it, ``reason``: why; ``suggestions``:
    (state, percent, why); ``chosen``: what a person chose; ``count``: instances in it now."""

    name: str
    versions: list[int]
    targets: tuple[str, ...] = ()
    reason: str = ""
    suggestions: list[tuple[str, int, str]] = field(default_factory=list)
    chosen: list[str] | None = None
    given: bool = False
    count: int = 0

    @property
    def first(self) -> str:
        """Return the chosen value of the first select."""
        return NOWHERE if self.given and self.chosen is None else (self.chosen or [""])[0]

    @property
    def second(self) -> str:
        return self.chosen[1] if self.chosen and len(self.chosen) > 1 else ""


def list_states(plan: Any, choices: Choices, counts: Mapping[str, int]) -> tuple[list[StateRow], list[StateRow]]:
    """List the rows of states: those without a place or chosen by a person, then those mapped automatically."""
    rows: dict[str, StateRow] = {}
    for source in plan.sources if plan else ():
        for name in [*source.states, *source.unmapped_states]:
            known = rows.get(name)
            versions = [*(known.versions if known else []), source.version]
            suggested = [(new, round(score * 100), why) for old, new, score, why in source.suggestions if old == name]
            rows[name] = StateRow(
                name, versions, tuple(source.states.get(name, ())), source.reasons.get(name, ""), suggested,
                choices.states.get(name), name in choices.states, counts.get(name, 0),
            )  # fmt: skip
    open_rows = [row for row in rows.values() if not row.targets or row.given]
    return open_rows, [row for row in rows.values() if row.targets and not row.given]


@dataclass(frozen=True, slots=True)
class FieldRow:
    """Holds one field of the new version. ``origin``: where its value comes from without an expression."""

    name: str
    types: str
    description: str
    origin: str
    text: str = ""
    new: bool = False


def list_fields(target: VersionView, olds: Iterable[VersionView], choices: Choices) -> list[FieldRow]:
    """List the fields of the new version, the new ones first."""
    known: dict[str, list[FieldOutline]] = {}
    for old in olds:
        for each in old.outline.data:
            known.setdefault(each.name, []).append(each)
    rows = [
        _make_field_row(each, known.get(each.name, []), choices.data.get(each.name, "")) for each in target.outline.data
    ]
    return sorted(rows, key=lambda row: not row.new)


def _make_field_row(field: FieldOutline, olds: list[FieldOutline], text: str) -> FieldRow:
    types = " or ".join(field.types)
    if not olds:
        initial = "not set" if field.initial is None else json.dumps(field.initial, ensure_ascii=False, default=str)
        return FieldRow(field.name, types, field.description, f"new: {initial}", text, new=True)
    changed = [old for old in olds if old.types != field.types]
    origin = f"converted from {' or '.join(changed[0].types)}" if changed else "kept"
    return FieldRow(field.name, types, field.description, origin, text, new=bool(changed))


def list_removed(target: VersionView, olds: Iterable[VersionView]) -> list[str]:
    """List the fields that the new version does not have."""
    names = {each.name for each in target.outline.data}
    return list(dict.fromkeys(each.name for old in olds for each in old.outline.data if each.name not in names))


def list_places(target: VersionView) -> list[tuple[str, str]]:
    """List the states of the new version that may be chosen: name, and label with what is around it."""
    states = [state for state in target.outline.states if state.type != "history" and state.name != target.outline.root]
    return [(state.name, " › ".join([*target.places([state.name])[0].around, state.name])) for state in states]
