"""Forms of the steps and repairs of an instance, and which form belongs to which repair."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms

from dashboard.shared.version_view import VersionView
from machines.engine import Instance, Wait
from machines.instances.forms import REASON_LIMIT, JsonText, StepForm, TypedForm

Posted = Mapping[str, Any] | None


class KeyedForm(StepForm):
    """Holds a step with an idempotency key: pressing its button twice counts once."""

    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class RepairForm(KeyedForm):
    """Holds a step outside the transitions. It needs a reason. ``takes``: the fields that the engine's repair takes."""

    takes: ClassVar[tuple[str, ...]] = ()
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the history."}
    )

    def __init__(
        self, name: str, view: VersionView, instance: Instance, waits: Iterable[Wait] = (), data: Posted = None
    ) -> None:
        """Make the form of the repair ``name``, filled with ``data`` if it was posted."""
        super().__init__(data, auto_id=f"{name}-%s")
        self.fill(name, view, instance, waits)

    def fill(self, name: str, view: VersionView, instance: Instance, waits: Iterable[Wait]) -> None:
        """Offer what there is to choose."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the engine's repair besides actor and reason. Call it after ``is_valid()``."""
        return {name: self.cleaned_data[name] for name in self.takes}

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

    takes = ("state", "data")
    state = forms.ChoiceField(label="state", error_messages=CHOOSE_STATE)
    data = JsonText(label="data to change", type_name="JSON object, optional; null unsets", rows=2)

    def fill(self, name: str, view: VersionView, instance: Instance, waits: Iterable[Wait]) -> None:
        outline = view.outline
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


OVERDUE_CHOICES = [
    ("fire", "when due, or immediately if overdue"),
    ("shift", "later, by the time suspended"),
]


class ResumeForm(RepairForm):
    """Resumes an instance. ``overdue``: when its timers fire."""

    takes = ("overdue",)
    overdue = forms.ChoiceField(label="timers fire", choices=OVERDUE_CHOICES, initial="fire")


class EditForm(RepairForm):
    """Holds a typed input for each declared field, and a box that unsets it. A blank input changes nothing."""

    takes = ("changes",)

    def fill(self, name: str, view: VersionView, instance: Instance, waits: Iterable[Wait]) -> None:
        data = self.data if self.is_bound else None
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

    def blame(self, field: str | None, message: str) -> None:
        self.typed.blame(field, message)


class ResetForm(RepairForm):
    takes = ("keep_data",)
    keep_data = forms.BooleanField(required=False, label="Keep the current data")


class WaitForm(RepairForm):
    """Chooses one of the pending jobs, for retry and cancel."""

    takes = ("invoke",)
    invoke = forms.ChoiceField(label="job", error_messages={"required": "Choose a job."})

    def fill(self, name: str, view: VersionView, instance: Instance, waits: Iterable[Wait]) -> None:
        self.fields["invoke"].choices = [(wait.invoke, _describe(wait)) for wait in waits if name in wait.repairs]


class SkipForm(WaitForm):
    """Skips a job. ``result``: what the job is taken to have returned."""

    takes = ("invoke", "result")
    result = JsonText(label="result", type_name="JSON, optional", rows=3)


def _describe(wait: Wait) -> str:
    place = wait.place or "no open job"
    return f"{wait.src} on {wait.queue}, in {wait.state}: {place}"


FORMS: dict[str, type[RepairForm]] = {
    "force": ForceForm, "edit": EditForm, "reset": ResetForm, "suspend": RepairForm, "resume": ResumeForm,
    "retry": WaitForm, "skip": SkipForm, "cancel": WaitForm, "delete": DeleteForm,
}  # fmt: skip
"""Repair -> its form."""
