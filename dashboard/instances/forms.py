"""Forms of the steps and repairs of an instance, and which form belongs to which repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.shared.version_view import VersionView
from machines.engine import Instance, Wait
from machines.engine.definitions import Outline
from machines.instances.forms import REASON_LIMIT, JsonText, StepForm, TypedForm


class KeyedForm(StepForm):
    """Holds a step with an idempotency key: pressing its button twice counts once."""

    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class RepairForm(KeyedForm):
    """Holds a step outside the transitions. It needs a reason."""

    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the history."}
    )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the engine's repair besides actor and reason. Call it after ``is_valid()``."""
        return {}

    def make_optional(self) -> None:
        """Make reason and confirmation optional, for a preview."""
        for name in ("reason", "sure"):
            if name in self.fields:
                self.fields[name].required = False

    def blame(self, field: str | None, message: str) -> None:
        """Add an error of the engine to the field it belongs to."""
        self.add_error("data" if "data" in self.fields and field is not None else None, message)


CHOOSE_STATE = {"required": "Choose a state."}


class ForceForm(RepairForm):
    """Forces states. In a machine with regions, one of each may be chosen; ``cleaned_data["state"]`` lists them."""

    state = forms.ChoiceField(label="state", error_messages=CHOOSE_STATE)
    data = JsonText(label="data to change", type_name="JSON object, optional; null unsets", rows=2)

    def __init__(self, outline: Outline, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="force-%s")
        self.several = any(state.type == "parallel" for state in outline.states)
        if self.several:
            self.fields["state"] = forms.MultipleChoiceField(
                label="state", error_messages=CHOOSE_STATE, widget=forms.SelectMultiple({"size": "8"})
            )
        names = [
            (state.name, "\N{EM SPACE}" * state.depth + state.name)  # em spaces: browsers keep them at the start
            for state in outline.states
            if state.type != "history" and state.name != outline.root
        ]
        self.fields["state"].choices = names if self.several else [("", "choose a state"), *names]

    def arguments(self) -> dict[str, Any]:
        return {"state": self.cleaned_data["state"], "data": self.cleaned_data["data"]}

    def clean_state(self) -> list[str]:
        state = self.cleaned_data["state"]
        return state if isinstance(state, list) else [state]

    def clean_data(self) -> dict[str, Any] | None:
        patch = self.cleaned_data["data"]
        if patch is not None and not isinstance(patch, dict):
            raise forms.ValidationError('Enter a JSON object, such as {"failed": 0}.')
        return patch


class DeleteForm(RepairForm):
    sure = forms.BooleanField(error_messages={"required": "Tick the box to confirm the deletion."})

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="delete-%s")


OVERDUE_CHOICES = [
    ("fire", "when due, or immediately if overdue"),
    ("shift", "later, by the time suspended"),
]


class SuspendForm(RepairForm):
    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="suspend-%s")


class ResumeForm(RepairForm):
    """Resumes an instance. ``overdue``: when its timers fire."""

    overdue = forms.ChoiceField(label="timers fire", choices=OVERDUE_CHOICES)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="resume-%s", initial={"overdue": "fire"})

    def arguments(self) -> dict[str, Any]:
        return {"overdue": self.cleaned_data["overdue"]}


Posted = Mapping[str, Any] | None


class EditForm(RepairForm):
    """Holds a typed input for each declared field, and a box that unsets it. A blank input changes nothing."""

    def __init__(self, view: VersionView, instance: Instance, data: Posted = None) -> None:
        super().__init__(data, auto_id="edit-%s")
        self.typed = TypedForm(
            view.outline.data, prefix="data", id_prefix="edit-data", data=data, earlier=instance.data
        )
        for field in self.typed.fields.values():
            field.widget.attrs.pop("placeholder", None)  # its initial value would look like the one it has
        held = [name for name in self.typed.fields if name in instance.data]
        self.fields["unset"] = forms.MultipleChoiceField(required=False, choices=[(name, name) for name in held])
        self.values = instance.data

    @property
    def rows(self) -> list[dict[str, Any]]:
        """List each field with its input, its current value, and whether it is to be unset."""
        unset = self["unset"].value() or []
        return [
            {"field": field, "is_set": field.name in self.values, "now": self.values.get(field.name),
             "unset": field.name in unset}
            for field in self.typed.list_declared()
        ]  # fmt: skip

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.typed.is_valid():
            raise forms.ValidationError("Correct the marked fields.")
        unset = cleaned.get("unset", [])
        changes = self.typed.values()
        both = [name for name in unset if name in changes]
        if both:
            raise forms.ValidationError(f"Either set or unset a field: {', '.join(both)} has both.")
        if not changes and not unset:
            raise forms.ValidationError("Change at least one field.")
        return cleaned | {"changes": changes | dict.fromkeys(unset)}

    def arguments(self) -> dict[str, Any]:
        return {"changes": self.cleaned_data["changes"]}

    def blame(self, field: str | None, message: str) -> None:
        self.typed.blame(field, message)


class ResetForm(RepairForm):
    keep_data = forms.BooleanField(required=False, label="Keep the current data")

    def __init__(self, data: Posted = None) -> None:
        super().__init__(data, auto_id="reset-%s")

    def arguments(self) -> dict[str, Any]:
        return {"keep_data": self.cleaned_data["keep_data"]}


class WaitForm(RepairForm):
    """Chooses one of the pending jobs, for retry and cancel."""

    invoke = forms.ChoiceField(label="job", error_messages={"required": "Choose a job."})

    def __init__(self, name: str, waits: Iterable[Wait], data: Posted = None, initial: Posted = None) -> None:
        super().__init__(data, auto_id=f"{name}-%s", initial=initial)
        self.fields["invoke"].choices = [(wait.invoke, _describe(wait)) for wait in waits if name in wait.repairs]

    def arguments(self) -> dict[str, Any]:
        return {"invoke": self.cleaned_data["invoke"]}


class SkipForm(WaitForm):
    """Skips a job. ``result``: what the job is taken to have returned."""

    result = JsonText(label="result", type_name="JSON, optional", rows=3)

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | {"result": self.cleaned_data["result"]}


def _describe(wait: Wait) -> str:
    place = wait.place or "no open job"
    return f"{wait.src} on {wait.queue}, in {wait.state}: {place}"


def form_for(
    name: str, view: VersionView, instance: Instance, waits: Iterable[Wait], data: Posted = None, initial: Posted = None
) -> RepairForm:
    """Return the form of a repair, filled with ``data`` if it was posted."""
    if name == "force":
        return ForceForm(view.outline, data)
    if name == "edit":
        return EditForm(view, instance, data)
    if name in ("retry", "cancel"):
        return WaitForm(name, waits, data, initial)
    if name == "skip":
        return SkipForm(name, waits, data, initial)
    plain = {"reset": ResetForm, "suspend": SuspendForm, "resume": ResumeForm, "delete": DeleteForm}
    return plain[name](data)
