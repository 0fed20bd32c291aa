"""Forms for what pages do besides typed fields: fire once, force, suspend, resume, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from machines.engine.definitions import Outline, StateOutline
from machines.forms import REASON_LIMIT, JsonText, StepForm


class KeyedForm(StepForm):
    """A step that counts once, however often its button is pressed."""

    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class RepairForm(KeyedForm):
    """A step that no transition provides: someone has to say why."""

    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the history."}
    )

    def asked(self) -> dict[str, Any]:
        """What the engine's repair takes beside who and why. Only after ``is_valid()``."""
        return {}

    def only_look(self) -> None:
        """A preview needs no reason, and no tick that one is sure."""
        for name in ("reason", "sure"):
            if name in self.fields:
                self.fields[name].required = False

    def blame(self, field: str | None, message: str) -> None:
        """Put an error the engine found beside the input it is about."""
        self.add_error("data" if "data" in self.fields and field is not None else None, message)


CHOOSE = {"required": "Choose a state."}


class ForceForm(RepairForm):
    """Of a machine with regions several states may be chosen, one in each; ``cleaned_data["state"]`` has them all."""

    state = forms.ChoiceField(label="state", error_messages=CHOOSE)
    data = JsonText(label="data to change", type_name="JSON object, optional; null unsets", rows=2)

    def __init__(self, outline: Outline, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="force-%s")
        self.several = any(state.type == "parallel" for state in outline.states)
        if self.several:
            self.fields["state"] = forms.MultipleChoiceField(
                label="state", error_messages=CHOOSE, widget=forms.SelectMultiple({"size": "8"})
            )
        names = [(state.name, _indented(state)) for state in outline.states if _can_stand(state, outline)]
        self.fields["state"].choices = names if self.several else [("", "choose a state"), *names]

    def asked(self) -> dict[str, Any]:
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


OVERDUE = [
    ("fire", "when due, or immediately if overdue"),
    ("shift", "later, by the time suspended"),
]


class SuspendForm(RepairForm):
    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="suspend-%s")


class ResumeForm(RepairForm):
    """``overdue``: when its timers fire."""

    overdue = forms.ChoiceField(label="timers fire", choices=OVERDUE)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="resume-%s", initial={"overdue": "fire"})

    def asked(self) -> dict[str, Any]:
        return {"overdue": self.cleaned_data["overdue"]}


def _can_stand(state: StateOutline, outline: Outline) -> bool:
    """Nothing stands in a history, and in the whole machine anyway."""
    return state.type != "history" and state.name != outline.root


def _indented(state: StateOutline) -> str:
    """Browsers strip spaces at the start of an option, and leave these."""
    return "\N{EM SPACE}" * state.depth + state.name
