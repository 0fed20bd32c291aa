"""The form of a new bulk action: the action on each instance, the reason, the rate."""

from collections.abc import Mapping
from typing import Any

from django import forms

from dashboard.instances.presenters import REPAIR_KINDS
from dashboard.shared.form_views import make_key
from dashboard.shared.version_view import VersionView
from machines.engine import errors
from machines.instances.bulks.order import MAX_RATE, MAX_REASON, WORK
from machines.instances.forms import JsonText, PageForm, TypedForm

Posted = Mapping[str, Any] | None
PLAIN = {"autocomplete": "off"}


class OneOf(forms.Select):
    """Renders a select for one value, for a field that takes several."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [data[name]] if data.get(name) else []


class BulkForm(PageForm):
    states = forms.MultipleChoiceField(label="state", error_messages={"required": "Choose a state."})
    invoke = forms.ChoiceField(label="job", error_messages={"required": "Choose a job."})
    reason = forms.CharField(
        label="reason",
        max_length=MAX_REASON,
        widget=forms.TextInput(PLAIN),
        help_text="Recorded in the history of each instance.",
        error_messages={"required": "Enter a reason. It is recorded in the history of each instance."},
    )
    rate = forms.IntegerField(
        label="max instances per second",
        required=False,
        min_value=0,
        max_value=MAX_RATE,
        widget=forms.TextInput(PLAIN | {"inputmode": "numeric"}),
        help_text="Blank: no limit.",
    )
    unchanged = forms.BooleanField(required=False, label="Skip instances that changed since they were matched")
    unset = forms.MultipleChoiceField(label="fields to unset", required=False)
    result = JsonText(label="result", type_name="JSON, optional", rows=3)
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    field_order = ("states", "invoke", "result", "unset", "reason", "rate", "unchanged", "key")

    def __init__(self, view: VersionView, action: str, posted: Posted = None) -> None:
        super().__init__(posted, auto_id="bulk-%s", label_suffix="", initial={"key": make_key()})
        if action == "edit":
            self.fields["unset"].choices = [(field.name, field.name) for field in view.outline.data]
        else:
            del self.fields["unset"]
        if action != "skip":
            del self.fields["result"]
        if action in WORK:
            names = [(name, name) for name in list_jobs(view)]
            self.fields["invoke"].choices = names if len(names) == 1 else [("", "choose a job"), *names]
        else:
            del self.fields["invoke"]
        if action == "force":
            self._offer(view)
        else:
            del self.fields["states"]

    def _offer(self, view: VersionView) -> None:
        states = view.outline.states
        names = [(s.name, s.name) for s in states if s.type != "history" and s.name != view.outline.root]
        several = any(state.type == "parallel" for state in states)
        widget = forms.SelectMultiple if several else OneOf
        self.fields["states"].widget = widget(choices=names if several else [("", "choose a state"), *names])
        self.fields["states"].choices = names


def list_jobs(view: VersionView) -> list[str]:
    """List the invokes of a machine that are jobs for handlers."""
    invokes = (invoke for state in view.outline.states for invoke in state.invokes)
    return list(dict.fromkeys(invoke.id for invoke in invokes if not invoke.machine))


def list_actions(view: VersionView) -> list[str]:
    """List the actions for instances of this machine, besides events."""
    if view.is_system or view.is_mirror:  # instances follow rows, which change by the methods of their model alone
        return []
    return [name for name in REPAIR_KINDS if name not in WORK or list_jobs(view)]


class NewBulk:
    """Combines the forms of a new bulk action.

    ``action``: one of REPAIR_KINDS, or "fire" with ``event``; "" until one is chosen.
    """

    def __init__(self, view: VersionView, action: str, event: str, posted: Posted = None) -> None:
        self.action = action
        self.event = event
        self.kind = REPAIR_KINDS.get(action)
        self.label = action.capitalize()
        self.about = self.kind.about if self.kind else ""
        if action == "fire":
            self.label = f"{'Call' if view.is_mirror else 'Fire'} {event}"
            self.about = view.event_description(event)
        self.form = BulkForm(view, action, posted)
        self.typed: TypedForm | None = None
        if action == "fire":
            self.typed = view.payload_form(event, None, id_prefix="bulk-payload", data=posted)
        elif action == "edit":
            self.typed = TypedForm(view.outline.data, prefix="data", id_prefix="bulk-data", data=posted)
            for field in self.typed.fields.values():
                field.widget.attrs.pop("placeholder", None)  # its initial value would look like the one they have

    @property
    def danger(self) -> bool:
        return self.kind is not None and self.kind.danger

    def is_valid(self) -> bool:
        # Both run, so that all errors are shown at once.
        valid = all([self.form.is_valid(), self.typed is None or self.typed.is_valid()])
        return bool(self.action) and valid and (self.action != "edit" or self._names_a_change())

    def terms(self) -> dict[str, Any]:
        """Return the terms of the order that the form holds. Call it after ``is_valid()``."""
        given = self.form.cleaned_data
        return {
            "action": self.action,
            "event": self.event,
            "payload": self.typed.values() if self.typed and self.action == "fire" else {},
            "changes": self._changes() if self.action == "edit" else {},
            "result": given.get("result"),
            "invoke": given.get("invoke", ""),
            "states": tuple(given.get("states") or ()),
            "reason": given["reason"],
            "rate": given["rate"] or 0,
            "unchanged": given["unchanged"],
        }

    def blame(self, error: errors.SignalboxError) -> None:
        """Add an error of the engine to the field it belongs to."""
        if isinstance(error, errors.BadPayload) and self.typed is not None:
            self.typed.blame(error.field, error.message)
        else:
            self.form.add_error(None, f"{error.message} ({error.code})")

    def _changes(self) -> dict[str, Any]:
        """Return the changed fields; None unsets a field."""
        assert self.typed is not None
        return self.typed.values() | dict.fromkeys(self.form.cleaned_data["unset"])

    def _names_a_change(self) -> bool:
        assert self.typed is not None
        both = sorted(self.typed.values().keys() & set(self.form.cleaned_data["unset"]))
        if both:
            self.form.add_error(None, f"Either set or unset a field: {', '.join(both)} has both.")
        elif not self._changes():
            self.form.add_error(None, "Change at least one field.")
        return not self.form.errors


class RateForm(PageForm):
    """Changes the rate limit of a bulk action."""

    rate = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_RATE,
        error_messages={"invalid": f"Enter a number from 0 to {MAX_RATE:,}."},
    )
