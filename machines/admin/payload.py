"""An event's payload as a form: a field for each of its fields, of the type that was declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms

from machines.engine.definitions import EventOutline, FieldOutline

EXACT = 2**53  # doubles hold whole numbers exactly up to here
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
REASON = 1000  # characters


class EventForm(forms.Form):
    """``expect`` is the version the operator saw: whoever was faster makes the other's form a conflict.

    The page writes it and the event's name into the form itself, so that a second try is on what is shown then.
    """

    expect = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self, outline: EventOutline, *, number: int, data: Mapping[str, Any] | None = None, **given: Any
    ) -> None:
        super().__init__(data, auto_id=f"id_{number}_%s", **given)
        self.outline = outline
        self.payload_names = {f"payload-{field.name}": field.name for field in outline.fields or ()}
        for field in outline.fields or ():
            self.fields[f"payload-{field.name}"] = _field(field)
        if outline.open:
            self.fields["further"] = Json(label="further fields", help_text="JSON object", dict_only=True)
        self.fields["reason"] = forms.CharField(max_length=REASON, required=False, help_text="stands in the history")

    def payload(self) -> dict[str, Any]:
        """What was entered; a field left blank is not sent. Only after ``is_valid()``."""
        entered = {name: self.cleaned_data.get(key) for key, name in self.payload_names.items()}
        return (self.cleaned_data.get("further") or {}) | {
            name: value for name, value in entered.items() if value is not None and value != ""
        }

    def blame(self, field: str | None, message: str) -> None:
        """Put an error of the engine beside the input it is about."""
        name = f"payload-{field}"
        self.add_error(name if name in self.fields else None, message)


class Json(forms.CharField):
    """JSON as the standard has it, without NaN and Infinity. Blank is None."""

    def __init__(self, *, dict_only: bool = False, **options: Any) -> None:
        widget = forms.Textarea(PLAIN | {"rows": 2, "cols": 40})
        super().__init__(required=False, widget=widget, **options)
        self.dict_only = dict_only

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        found = parsed(text) if text else None
        if self.dict_only and not isinstance(found, dict | None):
            raise forms.ValidationError('Write a JSON object, such as {"token": "MTOB1J"}.', code="json")
        return found


class TextOrJson(forms.MultiValueField):
    """For a field that takes several types, or whose type nobody declared: the operator says which it is."""

    def __init__(self, **options: Any) -> None:
        kinds = [("text", "text"), ("json", "JSON")]
        widget = _Pair([forms.TextInput(PLAIN), forms.Select({"aria-label": "read as"}, choices=kinds)])
        parts = (forms.CharField(strip=False, required=False), forms.ChoiceField(choices=kinds, required=False))
        super().__init__(parts, widget=widget, require_all_fields=False, **options)

    def compress(self, parts: list[Any]) -> Any:
        text, kind = parts or ("", "text")
        return parsed(text) if text and kind == "json" else text


class _Pair(forms.MultiWidget):
    def decompress(self, value: Any) -> list[Any]:
        return [value or "", "text"]


def parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise forms.ValidationError("This is nested too deeply.", code="json") from None
    except ValueError as error:
        raise forms.ValidationError(f"This is not JSON: {error}.", code="json") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _field(outline: FieldOutline) -> forms.Field:
    types = set(outline.types) - ({"integer"} if "number" in outline.types else set())
    options = {"label": outline.name, "required": outline.required}
    hint = outline.description
    if types == {"string"}:
        return forms.CharField(strip=False, widget=forms.TextInput(PLAIN), help_text=hint, **options)
    if types == {"integer"}:
        return forms.IntegerField(min_value=-EXACT, max_value=EXACT, help_text=hint or "whole number", **options)
    if types == {"number"}:
        return forms.FloatField(help_text=hint or "number", **options)
    if types == {"boolean"}:
        choices = [("", "not sent"), ("true", "true"), ("false", "false")]
        return forms.TypedChoiceField(
            choices=choices, coerce=lambda word: word == "true", empty_value=None, help_text=hint, **options
        )
    return TextOrJson(help_text=hint, **options)
