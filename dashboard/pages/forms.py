"""Forms for typed fields: an event's payload, a new instance's data, and the words that go with a step.

A field that is left blank is not sent at all; that is how an optional field stays out of the payload.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.pages.typed_fields import JsonText, field_for

REASON_LIMIT = 1000  # characters, the engine's own limit
MORE = "*"
"""Name of the field for whatever else an open payload carries; no declared field can be called that."""


class TypedForm(forms.Form):
    """One input for each declared field, of the declared type. ``is_open`` adds one for further fields as JSON.

    ``outlines`` are FieldOutline objects: name, types, description, initial.
    """

    def __init__(
        self,
        outlines: Iterable[Any],
        *,
        is_open: bool = False,
        prefix: str = "payload",
        id_prefix: str = "f",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, prefix=prefix, auto_id=f"{id_prefix}-%s")
        for outline in outlines:
            self.fields[outline.name] = field_for(outline)
        if is_open:
            self.fields[MORE] = JsonText(label="further fields", type_name="JSON object", rows=2)

    def declared(self) -> list[forms.BoundField]:
        """The inputs of the fields that have a name."""
        return [self[name] for name in self.fields if name != MORE]

    def more(self) -> forms.BoundField | None:
        """The input for whatever else an open payload carries."""
        return self[MORE] if MORE in self.fields else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get(MORE) is not None and not isinstance(cleaned[MORE], dict):
            self.add_error(MORE, 'Further fields are a JSON object, such as {"token": "MTOB1J"}.')
        return cleaned

    def values(self) -> dict[str, Any]:
        """What was entered, without the fields that were left blank. Only after ``is_valid()``."""
        further = self.cleaned_data.get(MORE) or {}
        return dict(further) | {
            name: entered for name, entered in self.cleaned_data.items() if name != MORE and not _is_blank(entered)
        }

    def blame(self, field: str | None, message: str) -> None:
        """Put an error the engine found beside the input it is about."""
        name = field if field in self.fields else MORE if MORE in self.fields else None
        self.add_error(name, message)


class StepForm(forms.Form):
    """What every step carries besides its payload: the version it was decided on, a key, a reason."""

    expect = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)


class RepairForm(StepForm):
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


def _is_blank(entered: Any) -> bool:
    return entered is None or entered == ""
