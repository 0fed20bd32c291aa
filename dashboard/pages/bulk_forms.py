"""The form of a new bulk: what is to be done with everything that was found, why, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from dashboard.pages.forms import fresh_key
from dashboard.pages.plans import Plan
from machines.bulk.order import MAX_RATE, MAX_REASON, WORK
from machines.engine import errors
from machines.forms import TypedForm

Posted = Mapping[str, Any] | None
PLAIN = {"autocomplete": "off"}


@dataclass(frozen=True, slots=True)
class Deed:
    """``label``: its name; ``about``: what it does to each instance."""

    label: str
    about: str


DEEDS = {
    "force": Deed("Force", "Puts each into a state whatever its transitions say. No entry or exit action runs."),
    "reset": Deed("Reset", "Back to its initial state and its initial data. No action runs; jobs and timers end."),
    "retry": Deed("Retry", "Its dead job is ready again with all its attempts; one that is delayed runs at once."),
    "skip": Deed("Skip", "Takes its job away and goes on as if that had ended without a result."),
    "cancel": Deed("Cancel", "Takes its job away; it gets error.invoke with the kind Withdrawn, if it listens for it."),
    "suspend": Deed("Suspend", "Each takes no event, and its timers wait, until it is resumed."),
    "resume": Deed("Resume", "Each suspended one goes on with what waited for it; timers that are past fire at once."),
    "delete": Deed("Delete", "Deletes each with its history and open jobs. This cannot be undone."),
}


class OneOf(forms.Select):
    """Chooses one, for a field that takes several."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [data[name]] if data.get(name) else []


class BulkForm(forms.Form):
    states = forms.MultipleChoiceField(label="state", error_messages={"required": "Choose the state."})
    invoke = forms.ChoiceField(label="its job", error_messages={"required": "Choose the job."})
    reason = forms.CharField(
        label="reason",
        max_length=MAX_REASON,
        widget=forms.TextInput(PLAIN),
        help_text="Stands in the history of each instance.",
        error_messages={"required": "Say why: it stays in the history of each."},
    )
    rate = forms.IntegerField(
        label="instances a second at most",
        required=False,
        min_value=0,
        max_value=MAX_RATE,
        widget=forms.TextInput(PLAIN | {"inputmode": "numeric"}),
        help_text="Blank: as fast as it goes.",
    )
    unchanged = forms.BooleanField(required=False, label="Only those nothing has happened to since they were found")
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, plan: Plan, action: str, posted: Posted = None) -> None:
        super().__init__(posted, auto_id="bulk-%s", label_suffix="", initial={"key": fresh_key()})
        if action in WORK:
            names = [(name, name) for name in jobs(plan)]
            self.fields["invoke"].choices = names if len(names) == 1 else [("", "choose a job"), *names]
        else:
            del self.fields["invoke"]
        if action == "force":
            self._offer(plan)
        else:
            del self.fields["states"]

    def _offer(self, plan: Plan) -> None:
        states = plan.outline.states
        names = [(s.name, s.name) for s in states if s.type != "history" and s.name != plan.outline.root]
        several = any(state.type == "parallel" for state in states)
        widget = forms.SelectMultiple if several else OneOf
        self.fields["states"].widget = widget(choices=names if several else [("", "choose a state"), *names])
        self.fields["states"].choices = names


def jobs(plan: Plan) -> list[str]:
    """The invokes of a machine that are work for handlers."""
    invokes = (invoke for state in plan.outline.states for invoke in state.invokes)
    return list(dict.fromkeys(invoke.id for invoke in invokes if not invoke.machine))


def deeds(plan: Plan) -> list[str]:
    """What can be done with instances of this machine, beside events."""
    return [name for name in DEEDS if name not in WORK or jobs(plan)]


class NewBulk:
    """``action``: one of DEEDS, or "fire" with ``event``; "" until one is chosen."""

    def __init__(self, plan: Plan, action: str, event: str, posted: Posted = None) -> None:
        self.action = action
        self.event = event
        self.label = f"Fire {event}" if action == "fire" else DEEDS[action].label if action else ""
        self.about = plan.event_description(event) if action == "fire" else DEEDS[action].about if action else ""
        self.form = BulkForm(plan, action, posted)
        self.payload: TypedForm | None = None
        if action == "fire":
            self.payload = plan.payload_form(event, None, id_prefix="bulk-payload", data=posted)

    @property
    def danger(self) -> bool:
        return self.action in ("force", "reset", "cancel", "delete")

    def is_valid(self) -> bool:
        # Both are asked, so that every mistake is shown at once.
        return bool(self.action) and all([self.form.is_valid(), self.payload is None or self.payload.is_valid()])

    def terms(self) -> dict[str, Any]:
        """Those of an order that stand in the form. After ``is_valid()``."""
        given = self.form.cleaned_data
        return {
            "action": self.action,
            "event": self.event,
            "payload": self.payload.values() if self.payload else {},
            "invoke": given.get("invoke", ""),
            "states": tuple(given.get("states") or ()),
            "reason": given["reason"],
            "rate": given["rate"] or 0,
            "unchanged": given["unchanged"],
        }

    def blame(self, error: errors.SignalboxError) -> None:
        """Put the engine's word where the mistake is."""
        if isinstance(error, errors.BadPayload) and self.payload is not None:
            self.payload.blame(error.field, error.message)
        else:
            self.form.add_error(None, error.message)
