"""State machines of the SM commands: opened by their keys, moved along their map or by force."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString

from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import Overlay, VersionView
from machines import diagrams, formats
from machines.engine import errors
from machines.engine.definitions import outline
from machines.engine.errors import DefinitionError
from machines.instances import sm_keys
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.instances.sm_keys import Moved, MoveRefused, StoredMachine
from machines.people.actor import Actor


class StateName(forms.CharField):
    """Parses a state name written as JSON, since browsers change line ends in what they send."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        super().__init__(max_length=30_000, strip=False, error_messages={"required": "Choose a state."})

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        try:
            name = json.loads(text)
            name.encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError, AttributeError):
            raise forms.ValidationError("Invalid state name.") from None
        return str(name)


class MoveForm(PageForm):
    """Moves the machine. ``seen``: the state at the time the form was made, which must still be current."""

    state = StateName()
    seen = StateName()
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)


class ForcedMoveForm(MoveForm):
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is stored as the reason of the state."}
    )


MAX_TARGETS = 30  # states one row of the table leads to


@dataclass(frozen=True, slots=True)
class Name:
    """Holds a state's name. ``sent``: as its forms send it; ``known``: it is a key of the map."""

    name: str
    known: bool = True

    @property
    def sent(self) -> str:
        return json.dumps(self.name)

    def __str__(self) -> str:
        return self.name or "(no name)"


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a state and its targets; ``more`` counts those that are left out."""

    state: Name
    onward: list[Name]
    more: int


@dataclass(frozen=True, slots=True)
class FailedMove:
    """Holds a move that failed: refused, conflict or mistake."""

    kind: str
    what: str
    message: str
    code: str
    status: int


def make_row(kept: StoredMachine, state: Name) -> Row:
    targets = list(dict.fromkeys(kept.map[state.name]))
    return Row(state, [Name(one, one in kept.map) for one in targets[:MAX_TARGETS]], len(targets[MAX_TARGETS:]))


BUTTONS = 40  # ways on with a form each
ROWS = 500  # states in the table and in the list to choose from


@require("view", globally=True)
def find(request: HttpRequest) -> HttpResponse:
    """Open a key by its name. SM keys cannot be listed: they look like any other key."""
    if key := request.GET.get("key"):
        return redirect("signalbox:sm-key", key)
    return render_page(request, "signalbox/sm/sm.html", {})


@require("view", globally=True)
def show(request: HttpRequest, key: str) -> HttpResponse:
    return _render_page(request, sm_keys.get(Actor.of(request), key))


@answer_form("sm-key", "fire", "fire", globally=True, instance="key")
def mutate(request: HttpRequest, key: str) -> str | HttpResponse:
    return _move(request, key, MoveForm(request.POST), force=False)


@answer_form("sm-key", "operate", "force", globally=True, instance="key")
def force(request: HttpRequest, key: str) -> str | HttpResponse:
    return _move(request, key, ForcedMoveForm(request.POST), force=True)


def _move(request: HttpRequest, key: str, form: MoveForm, *, force: bool) -> str | HttpResponse:
    actor, what = Actor.of(request), "force" if force else "move"
    if not form.is_valid():
        message = " ".join(error for found in form.errors.values() for error in found)
        return _render_page(request, sm_keys.get(actor, key), FailedMove("mistake", what, message, MISTAKE, 400))
    given = form.cleaned_data
    state, move = Name(given["state"]), sm_keys.force if force else sm_keys.mutate
    try:
        before = move(actor, key, state.name, seen=given["seen"], reason=given["reason"])
    except Moved as error:
        message = f"The state changed from {Name(given['seen'])} to {Name(error.now.current)}."
        return _render_page(request, error.now, FailedMove("conflict", what, message, errors.Conflict.code, 409))
    except MoveRefused as error:
        return _render_page(
            request, sm_keys.get(actor, key), FailedMove("refused", what, str(error), errors.Refused.code, 422)
        )
    return f"{'Forced: ' if force else ''}{Name(before.current)} → {state}"


def _render_page(request: HttpRequest, kept: StoredMachine, attempt: FailedMove | None = None) -> HttpResponse:
    onward = [Name(state) for state in kept.onward]
    states = [Name(state) for state in kept.map]
    context: dict[str, Any] = {
        "kept": kept,
        "current": Name(kept.current, kept.current in kept.map),
        "initial": Name(kept.initial, kept.initial in kept.map),
        "drawing": draw_key(kept),
        "onward": onward[:BUTTONS],
        "further": onward[BUTTONS:],
        "states": states[:ROWS],
        "rows": [make_row(kept, state) for state in states[:ROWS]],
        "left_out": len(states[ROWS:]),
        "attempt": attempt,
    }
    return render_page(request, "signalbox/sm/key.html", context, status=attempt.status if attempt else 200)


MAX_DRAWINGS = 32  # drawings of maps that were looked at last
MAX_STATES, MAX_ARROWS = 200, 600  # a larger diagram is unreadable, and takes seconds to lay out


@dataclass(frozen=True, slots=True)
class Drawing:
    """Holds the diagram. ``svg`` is None if there is none; ``why`` says why."""

    svg: SafeString | None = None
    is_vast: bool = False
    why: tuple[str, ...] = ()


def draw_key(kept: StoredMachine) -> Drawing:
    """Draw the map with its current state highlighted and the transitions out of it marked."""
    arrows = sum(len(targets) for targets in kept.map.values())
    if not kept.map:
        return Drawing(why=("The map has no states.",))
    if len(kept.map) > MAX_STATES or arrows > MAX_ARROWS:
        return Drawing(
            why=(f"The map has {len(kept.map):,} states and {arrows:,} transitions: too many for a diagram.",)
        )
    view = _load_map(json.dumps({"initial": kept.initial, "map": kept.map, "current": "", "reason": ""}))
    if isinstance(view, tuple):
        return Drawing(why=view)
    overlay = Overlay()
    state = view.outline.state(kept.current)
    if state is not None:
        overlay.mark(view.index["states"][state.name], "current")
        for transition in state.transitions:
            overlay.mark(view.index["transitions"][transition.id], "possible")
    return Drawing(overlay.draw_on(view.svg), view.is_vast)


@lru_cache(maxsize=MAX_DRAWINGS)
def _load_map(text: str) -> VersionView | tuple[str, ...]:
    """Load a map as a definition; or return the errors that prevent it."""
    try:
        found = outline(formats.load(text, format="sm"))
    except DefinitionError as error:
        return tuple(finding.message for finding in error.findings if finding.is_error)[:5]
    return VersionView(found.id, 0, found, diagrams.draw(found), diagrams.index(found), "")
