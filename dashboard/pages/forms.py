"""Forms for what pages do besides typed fields: fire once, create, force, delete."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from machines.forms import REASON_LIMIT, JsonText, StepForm


class KeyedForm(StepForm):
    """A step that counts once, however often its button is pressed."""

    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class RepairForm(KeyedForm):
    """A step that no transition provides: someone has to say why."""

    reason = forms.CharField(max_length=REASON_LIMIT, error_messages={"required": "Say why: it stays in the history."})


class ForceForm(RepairForm):
    state = forms.ChoiceField(error_messages={"required": "Choose the state."})
    data = JsonText(label="data", type_name="JSON object", rows=2)

    def __init__(self, states: Iterable[str], data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="force-%s")
        self.fields["state"].choices = [("", "choose a state"), *((name, name) for name in states)]

    def clean_data(self) -> dict[str, Any] | None:
        patch = self.cleaned_data["data"]
        if patch is not None and not isinstance(patch, dict):
            raise forms.ValidationError('Data to change is a JSON object, such as {"failed": 0}.')
        return patch


class DeleteForm(RepairForm):
    sure = forms.BooleanField(error_messages={"required": "Tick this to delete."})

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="delete-%s")


class CreateForm(forms.Form):
    id = forms.CharField(max_length=200, required=False, strip=False)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="create-%s")


def fresh_key() -> str:
    """An idempotency key for one rendered form: pressing its button twice counts once."""
    return secrets.token_urlsafe(12)
