"""Forms of the repairs that are more than a reason, and which form belongs to which repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.shared.version_view import Plan
from machines.engine import Instance, Wait
from machines.forms import JsonText, TypedForm

from .forms import DeleteForm, ForceForm, RepairForm, ResumeForm, SuspendForm

Posted = Mapping[str, Any] | None


class EditForm(RepairForm):
    """One typed input for each declared field, and a box that unsets it. What is left blank stays as it is."""

    def __init__(self, plan: Plan, instance: Instance, data: Posted = None) -> None:
        super().__init__(data, auto_id="edit-%s")
        self.typed = TypedForm(plan.outline.data, prefix="data", id_prefix="edit-data", data=data)
        for field in self.typed.fields.values():
            field.widget.attrs.pop("placeholder", None)  # its initial value would look like the one it has
        held = [name for name in self.typed.fields if name in instance.data]
        self.fields["unset"] = forms.MultipleChoiceField(required=False, choices=[(name, name) for name in held])
        self.values = instance.data

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each field its input, its value now, and whether it is to be unset."""
        unset = self["unset"].value() or []
        return [
            {"field": field, "is_set": field.name in self.values, "now": self.values.get(field.name),
             "unset": field.name in unset}
            for field in self.typed.declared()
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

    def asked(self) -> dict[str, Any]:
        return {"changes": self.cleaned_data["changes"]}

    def blame(self, field: str | None, message: str) -> None:
        self.typed.blame(field, message)


class ResetForm(RepairForm):
    keep_data = forms.BooleanField(required=False, label="Keep the current data")

    def __init__(self, data: Posted = None) -> None:
        super().__init__(data, auto_id="reset-%s")

    def asked(self) -> dict[str, Any]:
        return {"keep_data": self.cleaned_data["keep_data"]}


class WaitForm(RepairForm):
    """For retry and cancel: which of the jobs it waits for."""

    invoke = forms.ChoiceField(label="job", error_messages={"required": "Choose a job."})

    def __init__(self, name: str, waits: Iterable[Wait], data: Posted = None, initial: Posted = None) -> None:
        super().__init__(data, auto_id=f"{name}-%s", initial=initial)
        self.fields["invoke"].choices = [(wait.invoke, _told(wait)) for wait in waits if name in wait.repairs]

    def asked(self) -> dict[str, Any]:
        return {"invoke": self.cleaned_data["invoke"]}


class SkipForm(WaitForm):
    """``result``: what the job is taken to have ended with."""

    result = JsonText(label="result", type_name="JSON, optional", rows=3)

    def asked(self) -> dict[str, Any]:
        return super().asked() | {"result": self.cleaned_data["result"]}


def _told(wait: Wait) -> str:
    place = wait.place or "no open job"
    return f"{wait.src} on {wait.queue}, in {wait.state}: {place}"


def form_for(
    name: str, plan: Plan, instance: Instance, waits: Iterable[Wait], data: Posted = None, initial: Posted = None
) -> RepairForm:
    """The form of a repair, filled with ``data`` where it was posted."""
    if name == "force":
        return ForceForm(plan.outline, data)
    if name == "edit":
        return EditForm(plan, instance, data)
    if name in ("retry", "cancel"):
        return WaitForm(name, waits, data, initial)
    if name == "skip":
        return SkipForm(name, waits, data, initial)
    plain = {"reset": ResetForm, "suspend": SuspendForm, "resume": ResumeForm, "delete": DeleteForm}
    return plain[name](data)
