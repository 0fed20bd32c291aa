"""Django forms for fields that a definition declares: an event's payload, an instance's data. Pages and admin share
them.

A field that is left blank is not sent at all; that is how an optional field stays out of the payload.
An empty text is sent by saying so: a box beside each text, or ``""`` read as JSON where any type is taken.

``WidgetWriter`` writes the widgets without Django's widget templates, which took a third of a page with several forms:
a select of forty options renders eighty templates there. What is written here is the same, character by character
(``tests/pages/shared/test_form_rendering.py``). Widgets with a template of their own, and whole forms, still go through
their templates.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Any

from django import forms
from django.forms.renderers import DjangoTemplates
from django.utils.formats import localize
from django.utils.html import conditional_escape
from django.utils.safestring import SafeData

from machines.engine.definitions import FieldOutline
from machines.engine.limits import MAX_REASON as REASON_LIMIT

Widget = Mapping[str, Any]
"""What ``get_context`` of a widget says under "widget"."""

FOLDER = "django/forms/widgets/"

SEND_EMPTY = '<label class="send-empty" title="Send an empty text. A blank field is not sent.">'

INPUTS = ("text", "hidden", "number", "email", "url", "password", "checkbox", "input", "date", "datetime", "time")


def _escape(value: Any) -> str:
    """Escape as ``{{ value }}`` does."""
    return escape(value) if type(value) is str else conditional_escape(localize(value))


def _escape_text(value: Any) -> str:
    """Escape as ``{{ value|stringformat:'s' }}`` does."""
    if type(value) is str:
        return escape(value)
    return str(value) if isinstance(value, SafeData) else escape(str(value))


def _write_attrs(widget: Widget) -> str:
    return "".join(
        f" {_escape(name)}" if value is True else f' {_escape(name)}="{_escape_text(value)}"'
        for name, value in widget["attrs"].items()
        if value is not False
    )


def _write_option(option: Widget) -> str:
    return f'<option value="{_escape_text(option["value"])}"{_write_attrs(option)}>{_escape(option["label"])}</option>'


def _write_groups(groups: list[tuple[Any, list[Widget], int]]) -> Iterator[str]:
    for name, options, _ in groups:
        if name:
            yield f'\n  <optgroup label="{_escape(name)}">'
        for option in options:
            yield f"\n  {_write_option(option)}\n"
        if name:
            yield "\n  </optgroup>"


def _write_select(widget: Widget) -> str:
    groups = "".join(_write_groups(widget["optgroups"]))
    return f'<select name="{_escape(widget["name"])}"{_write_attrs(widget)}>{groups}\n</select>'


def _write_textarea(widget: Widget) -> str:
    value = widget["value"]
    shown = _escape(value) if value else ""
    return f'<textarea name="{_escape(widget["name"])}"{_write_attrs(widget)}>\n{shown}</textarea>'


def _write_input(widget: Widget) -> str:
    value = widget["value"]
    shown = "" if value is None else f' value="{_escape_text(value)}"'
    return f'<input type="{_escape(widget["type"])}" name="{_escape(widget["name"])}"{shown}{_write_attrs(widget)}>'


def _write_text_or_empty(widget: Widget) -> str:
    text, box = (_write_input(part) for part in widget["subwidgets"])
    return f"{text}{SEND_EMPTY}{box} an empty text</label>"


WRITERS: dict[str, Callable[[Widget], str]] = {
    **{f"{FOLDER}{name}.html": _write_input for name in INPUTS},
    f"{FOLDER}textarea.html": _write_textarea,
    f"{FOLDER}select.html": _write_select,
    "signalbox/forms/text_or_empty.html": _write_text_or_empty,
}


class WidgetWriter(DjangoTemplates):
    """A form renderer: widgets in Python, anything else by its template."""

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:
        write = WRITERS.get(template_name)
        return write(context["widget"]) if write else str(super().render(template_name, context, request))


class PageForm(forms.Form):
    """A form of our pages: ``forms.Form`` whose widgets are written by ``WidgetWriter``."""

    default_renderer = WidgetWriter()


PLAIN = {"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}
WHOLE = 2**53
"""Numbers are doubles in the engine: whole numbers are exact up to here."""
TEXT_LIMIT = 65536  # characters; the engine's own limit on a payload is 64 KiB


class TypedWidget:
    """What the template asks: the name of the type, and whether there are two inputs side by side."""

    type_name = "text"
    is_pair = False


class Text(TypedWidget, forms.MultiValueField):
    """Blank is None, which is not sent; "" is what the box beside it says. A required one may be empty, not blank."""

    is_pair = True

    def __init__(self, **options: Any) -> None:
        text = forms.CharField(max_length=TEXT_LIMIT, strip=False, required=False)
        parts = [text, forms.BooleanField(required=False)]
        super().__init__(parts, widget=TextOrEmpty(), require_all_fields=False, **options)

    def compress(self, parts: list[Any]) -> str | None:
        text, is_empty = parts or ("", False)
        if text and is_empty:
            raise forms.ValidationError('Enter a text or tick "an empty text", not both.', code="both")
        return text if text or is_empty else _blank(self)


class Whole(TypedWidget, forms.IntegerField):
    type_name = "whole number"

    def __init__(self, **options: Any) -> None:
        limits = {"min_value": -WHOLE, "max_value": WHOLE}
        super().__init__(widget=forms.TextInput(PLAIN | {"inputmode": "numeric"}), **limits, **options)


class Number(TypedWidget, forms.FloatField):
    type_name = "number"

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.TextInput(PLAIN | {"inputmode": "decimal"}), **options)

    def to_python(self, value: Any) -> int | float | None:
        number = super().to_python(value)
        return int(number) if number is not None and number.is_integer() and abs(number) <= WHOLE else number


class YesNo(TypedWidget, forms.TypedChoiceField):
    type_name = "true or false"

    def __init__(self, **options: Any) -> None:
        choices = [("", "not sent"), ("true", "true"), ("false", "false")]
        super().__init__(choices=choices, coerce=lambda word: word == "true", empty_value=None, **options)


class JsonText(TypedWidget, forms.CharField):
    type_name = "JSON"

    def __init__(self, *, type_name: str = "JSON", rows: int = 3, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(max_length=TEXT_LIMIT, widget=forms.Textarea(PLAIN | {"rows": rows, "cols": 40}), **options)
        self.widget.attrs.pop("maxlength", None)
        self.type_name = type_name

    def clean(self, value: Any) -> Any:
        text = super().clean(value)  # the text is what may not be too long
        return parse(text) if text else None


class TextOrJson(TypedWidget, forms.MultiValueField):
    """For a field that takes several types, or whose type nobody declared: the operator says which it is."""

    type_name = "text or JSON"
    is_pair = True

    def __init__(self, *, kind: str = "text", **options: Any) -> None:
        """Make the field. ``kind``: what is chosen at first."""
        text = forms.CharField(max_length=TEXT_LIMIT, strip=False, required=False)
        parts = [text, forms.ChoiceField(choices=TextAndKind.kinds, required=False)]
        super().__init__(parts, widget=TextAndKind(kind), require_all_fields=False, **options)

    def compress(self, parts: list[Any]) -> Any:
        text, kind = parts or ("", "text")
        if not text:
            return _blank(self)
        return parse(text) if kind == "json" else text


def _blank(field: forms.Field) -> None:
    """Tell whether the field is blank: Django asks a field of two inputs for both; here the first decides."""
    if field.required:
        raise forms.ValidationError(field.error_messages["required"], code="required")


COMPARED = "Compared with a number: choose JSON to enter one."
SINGLE = {"string": Text, "integer": Whole, "number": Number, "boolean": YesNo}
STRUCTURED = {"object", "array", "null"}


def field_for(outline: FieldOutline, earlier: Any = None) -> forms.Field:
    """Return the input for a field; left blank, it is not sent, unless the field is required.

    A field that declares no type has that of what expressions compare it with. Where that is open too, ``earlier``, a
    value that it had before, says whether JSON is chosen at first.
    """
    types = set(outline.types or ["any"])
    if "any" in types and outline.compared in (("number",), ("boolean",)):
        types = set(outline.compared)
    field = _field(types, outline, earlier)
    if outline.initial not in (None, ""):
        shown = field.widget.widgets[0] if isinstance(field.widget, forms.MultiWidget) else field.widget
        shown.attrs["placeholder"] = json.dumps(outline.initial, ensure_ascii=False).strip('"')
    return field


def _field(types: set[str], outline: FieldOutline, earlier: Any) -> forms.Field:
    options = {"label": outline.name, "help_text": outline.description, "required": outline.required}
    if types == {"integer", "number"}:
        types = {"number"}
    if len(types) == 1 and (single := SINGLE.get(next(iter(types)))):
        return single(**options)
    if types <= STRUCTURED:
        return JsonText(type_name=f"JSON {' or '.join(sorted(types))}", **options)
    if "number" in outline.compared:
        options["help_text"] = f"{outline.description} {COMPARED}".strip()
    is_json = earlier is not None and not isinstance(earlier, str)
    return TextOrJson(kind="json" if is_json or outline.compared == ("number",) else "text", **options)


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

    def __init__(self, kind: str) -> None:
        super().__init__("kind", forms.Select({"aria-label": "Format"}, choices=self.kinds))
        self._kind = kind

    def decompress(self, value: Any) -> list[Any]:
        if value is None:
            return ["", self._kind]
        return [value, "text"] if isinstance(value, str) else [json.dumps(value), "json"]


MORE = "*"
"""Name of the field for whatever else an open payload carries; no declared field can be called that."""


class TypedForm(PageForm):
    """One input for each declared field, of the declared type. ``is_open`` adds one for additional fields as JSON."""

    def __init__(
        self,
        outlines: Iterable[FieldOutline],
        *,
        is_open: bool = False,
        prefix: str = "payload",
        id_prefix: str = "f",
        data: Mapping[str, Any] | None = None,
        earlier: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, prefix=prefix, auto_id=f"{id_prefix}-%s")
        for outline in outlines:
            self.fields[outline.name] = field_for(outline, (earlier or {}).get(outline.name))
        if is_open:
            self.fields[MORE] = JsonText(label="additional fields", type_name="JSON object", rows=2)

    def list_declared(self) -> list[forms.BoundField]:
        """Return the inputs of the fields that have a name."""
        return [self[name] for name in self.fields if name != MORE]

    def more(self) -> forms.BoundField | None:
        """Return the input for whatever else an open payload carries."""
        return self[MORE] if MORE in self.fields else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get(MORE) is not None and not isinstance(cleaned[MORE], dict):
            self.add_error(MORE, 'Enter a JSON object, such as {"token": "MTOB1J"}.')
        return cleaned

    def values(self) -> dict[str, Any]:
        """Return what was entered, without the fields that were left blank. Only after ``is_valid()``."""
        further = self.cleaned_data.get(MORE) or {}
        return dict(further) | {
            name: entered for name, entered in self.cleaned_data.items() if name != MORE and entered is not None
        }

    def blame(self, field: str | None, message: str) -> None:
        """Put an error the engine found beside the input it is about."""
        name = field if field in self.fields else MORE if MORE in self.fields else None
        self.add_error(name, message)


class StepForm(PageForm):
    """``expect`` is the revision the operator saw: a step in between makes the form a conflict.

    The page writes it into the form itself, so that a second try is on what is shown then.
    """

    expect = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False, help_text="recorded in the history")
