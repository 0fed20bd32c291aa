"""State machines of the SM commands: opened by their keys, moved along their map or by force."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.access import require
from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.permissions import require_audited
from dashboard.shared.rendering import render_page
from machines.engine import errors
from machines.instances import sm_keys
from machines.instances.sm_keys import Kept, Moved, MoveRefused
from machines.people.actor import Actor

from . import diagram
from .forms import ForcedMoveForm, MoveForm
from .presenters import FailedMove, Name, make_row

BUTTONS = 40  # ways on with a form each
ROWS = 500  # states in the table and in the list to choose from


@require("view", globally=True)
def find(request: HttpRequest) -> HttpResponse:
    """Open a key by its name. SM keys cannot be listed: they look like any other key."""
    if key := request.GET.get("key"):
        return redirect("signalbox:sm-key", key)
    return render_page(request, "signalbox/sm/sm.html", {"section": "machines"})


@require("view", globally=True)
def show(request: HttpRequest, key: str) -> HttpResponse:
    return _render_page(request, sm_keys.get(Actor.of(request), key))


@require_audited("fire", "fire", globally=True, instance="key")
def mutate(request: HttpRequest, key: str) -> HttpResponse:
    return _move(request, key, MoveForm(request.POST), force=False)


@require_audited("operate", "force", globally=True, instance="key")
def force(request: HttpRequest, key: str) -> HttpResponse:
    return _move(request, key, ForcedMoveForm(request.POST), force=True)


def _move(request: HttpRequest, key: str, form: MoveForm, *, force: bool) -> HttpResponse:
    if request.method != "POST":
        return redirect("signalbox:sm-key", key)
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
    messages.success(request, f"{'Forced: ' if force else ''}{Name(before.current)} → {state}")
    return redirect("signalbox:sm-key", key)


def _render_page(request: HttpRequest, kept: Kept, attempt: FailedMove | None = None) -> HttpResponse:
    onward = [Name(state) for state in kept.onward]
    states = [Name(state) for state in kept.map]
    context: dict[str, Any] = {
        "section": "machines",
        "kept": kept,
        "current": Name(kept.current, kept.current in kept.map),
        "initial": Name(kept.initial, kept.initial in kept.map),
        "drawing": diagram.draw_key(kept),
        "onward": onward[:BUTTONS],
        "further": onward[BUTTONS:],
        "states": states[:ROWS],
        "rows": [make_row(kept, state) for state in states[:ROWS]],
        "left_out": len(states[ROWS:]),
        "attempt": attempt,
    }
    return render_page(request, "signalbox/sm/key.html", context, status=attempt.status if attempt else 200)
