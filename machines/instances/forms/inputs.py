"""Form fields for declared types: text, number, choice, JSON."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from machines.engine.definitions import FieldOutline

PLAIN = {"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}
WHOLE = 2**53
"""Numbers are doubles in the engine: whole numbers are exact up to here."""
TEXT_LIMIT = 65536  # characters; the engine's own limit on a payload is 64 KiB


class Typed:
    """What the template asks: the name of the type, and whether there are two inputs side by side."""

    type_name = "text"
    is_pair = False


class Text(Typed, forms.MultiValueField):
    """Blank is None, which is not sent; "" is what the box beside it says. A required one may be empty, not blank."""

    is_pair = True

    def __init__(self, **options: Any) -> None:
        text = forms.CharField(max_length=TEXT_LIMIT, strip=False, required=False)
        parts = [text, forms.BooleanField(required=False)]
        super().__init__(parts, widget=TextOrEmpty(), require_all_fields=False, **options)

    def compress(self, parts: list[Any]) -> str | None:
        text, is_empty = parts or ("", False)
        if text and is_empty:
            raise forms.ValidationError('Enter a text or tick "send empty", not both.', code="both")
        return text if text or is_empty else _blank(self)


class Whole(Typed, forms.IntegerField):
    type_name = "whole number"

    def __init__(self, **options: Any) -> None:
        limits = {"min_value": -WHOLE, "max_value": WHOLE}
        super().__init__(widget=forms.TextInput(PLAIN | {"inputmode": "numeric"}), **limits, **options)


class Number(Typed, forms.FloatField):
    type_name = "number"

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.TextInput(PLAIN | {"inputmode": "decimal"}), **options)

    def to_python(self, value: Any) -> int | float | None:
        number = super().to_python(value)
        return int(number) if number is not None and number.is_integer() and abs(number) <= WHOLE else number


class YesNo(Typed, forms.TypedChoiceField):
    type_name = "true or false"

    def __init__(self, **options: Any) -> None:
        choices = [("", "not sent"), ("true", "true"), ("false", "false")]
        super().__init__(choices=choices, coerce=lambda word: word == "true", empty_value=None, **options)


class JsonText(Typed, forms.CharField):
    type_name = "JSON"

    def __init__(self, *, type_name: str = "JSON", rows: int = 3, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(max_length=TEXT_LIMIT, widget=forms.Textarea(PLAIN | {"rows": rows, "cols": 40}), **options)
        self.widget.attrs.pop("maxlength", None)
        self.type_name = type_name

    def clean(self, value: Any) -> Any:
        text = super().clean(value)  # the text is what may not be too long
        return parse(text) if text else None


class TextOrJson(Typed, forms.MultiValueField):
    """For a field that takes several types, or whose type nobody declared: the operator says which it is."""

    type_name = "text or JSON"
    is_pair = True

    def __init__(self, **options: Any) -> None:
        text = forms.CharField(max_length=TEXT_LIMIT, strip=False, required=False)
        parts = [text, forms.ChoiceField(choices=TextAndKind.kinds, required=False)]
        super().__init__(parts, widget=TextAndKind(), require_all_fields=False, **options)

    def compress(self, parts: list[Any]) -> Any:
        text, kind = parts or ("", "text")
        if not text:
            return _blank(self)
        return parse(text) if kind == "json" else text


def _blank(field: forms.Field) -> None:
    """Tell whether the field is blank: Django asks a field of two inputs for both; here the first decides."""
    if field.required:
        raise forms.ValidationError(field.error_messages["required"], code="required")


SINGLE = {"string": Text, "integer": Whole, "number": Number, "boolean": YesNo}
STRUCTURED = {"object", "array", "null"}


def field_for(outline: FieldOutline) -> forms.Field:
    """Return the input for a field; left blank, it is not sent, unless the field is required."""
    field = _field(set(outline.types or ["any"]), outline)
    if outline.initial not in (None, ""):
        shown = field.widget.widgets[0] if isinstance(field.widget, forms.MultiWidget) else field.widget
        shown.attrs["placeholder"] = json.dumps(outline.initial, ensure_ascii=False).strip('"')
    return field


def _field(types: set[str], outline: FieldOutline) -> forms.Field:
    options = {"label": outline.name, "help_text": outline.description, "required": outline.required}
    if types == {"integer", "number"}:
        types = {"number"}
    if len(types) == 1 and (single := SINGLE.get(next(iter(types)))):
        return single(**options)
    if types <= STRUCTURED:
        return JsonText(type_name=f"JSON {' or '.join(sorted(types))}", **options)
    return TextOrJson(**options)


def parse(text: str) -> Any:
    """Parse JSON as the standard has it: no NaN, no Infinity. Raises ValidationError that says where it goes wrong."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise forms.ValidationError(f"Invalid JSON: {error.msg} ({where}).", code="json") from None
    except RecursionError:
        raise forms.ValidationError("This JSON is nested too deeply.", code="json") from None
    except ValueError as error:
        raise forms.ValidationError(f"Invalid JSON: {error}.", code="json") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


class Pair(forms.MultiWidget):
    """The tilde in ``second`` keeps the second input's name apart from every field's own."""

    use_fieldset = False

    def __init__(self, second: str, beside: forms.Widget) -> None:
        super().__init__({"": forms.TextInput(PLAIN), f"~{second}": beside})

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0"

    def use_required_attribute(self, initial: Any) -> bool:
        return False  # a browser would ask for both of the two


class TextOrEmpty(Pair):
    """A text, and a box to tick when it is meant to be empty rather than not sent."""

    template_name = "signalbox/forms/text_or_empty.html"

    def __init__(self) -> None:
        super().__init__("empty", forms.CheckboxInput())

    def decompress(self, value: Any) -> list[Any]:
        return [value, value == ""]


class TextAndKind(Pair):
    """A text, and what to read it as."""

    kinds = (("text", "text"), ("json", "JSON"))

    def __init__(self) -> None:
        super().__init__("kind", forms.Select({"aria-label": "Format"}, choices=self.kinds))

    def decompress(self, value: Any) -> list[Any]:
        if value is None:
            return ["", "text"]
        return [value, "text"] if isinstance(value, str) else [json.dumps(value), "json"]
