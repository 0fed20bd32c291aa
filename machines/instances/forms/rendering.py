"""Writes the widgets of forms without Django's widget templates, which took a third of a page with several forms.

A select of forty options renders eighty templates there. What is written here is the same, character by character
(``tests/pages/shared/test_form_rendering.py``). Widgets with a template of their own, and whole forms, still go through
their templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from django import forms
from django.forms.renderers import DjangoTemplates
from django.utils.formats import localize
from django.utils.html import conditional_escape
from django.utils.safestring import SafeData

Widget = Mapping[str, Any]
"""What ``get_context`` of a widget says under "widget"."""
FOLDER = "django/forms/widgets/"
SEND_EMPTY = '<label class="send-empty" title="Send an empty text. A blank field is not sent.">'
INPUTS = ("text", "hidden", "number", "email", "url", "password", "checkbox", "input", "date", "datetime", "time")


class WidgetWriter(DjangoTemplates):
    """A form renderer: widgets in Python, anything else by its template."""

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:
        write = WRITERS.get(template_name)
        return write(context["widget"]) if write else str(super().render(template_name, context, request))


class PageForm(forms.Form):
    """A form of our pages: ``forms.Form`` whose widgets are written by ``WidgetWriter``."""

    default_renderer = WidgetWriter()


def _write_input(widget: Widget) -> str:
    value = widget["value"]
    shown = "" if value is None else f' value="{_escape_text(value)}"'
    return f'<input type="{_escape(widget["type"])}" name="{_escape(widget["name"])}"{shown}{_write_attrs(widget)}>'


def _write_text_or_empty(widget: Widget) -> str:
    text, box = (_write_input(part) for part in widget["subwidgets"])
    return f"{text}{SEND_EMPTY}{box} send empty</label>"


def _write_textarea(widget: Widget) -> str:
    value = widget["value"]
    shown = _escape(value) if value else ""
    return f'<textarea name="{_escape(widget["name"])}"{_write_attrs(widget)}>\n{shown}</textarea>'


def _write_select(widget: Widget) -> str:
    groups = "".join(_write_groups(widget["optgroups"]))
    return f'<select name="{_escape(widget["name"])}"{_write_attrs(widget)}>{groups}\n</select>'


def _write_groups(groups: list[tuple[Any, list[Widget], int]]) -> Iterator[str]:
    for name, options, _ in groups:
        if name:
            yield f'\n  <optgroup label="{_escape(name)}">'
        for option in options:
            yield f"\n  {_write_option(option)}\n"
        if name:
            yield "\n  </optgroup>"


def _write_option(option: Widget) -> str:
    return f'<option value="{_escape_text(option["value"])}"{_write_attrs(option)}>{_escape(option["label"])}</option>'


def _write_attrs(widget: Widget) -> str:
    return "".join(
        f" {_escape(name)}" if value is True else f' {_escape(name)}="{_escape_text(value)}"'
        for name, value in widget["attrs"].items()
        if value is not False
    )


def _escape(value: Any) -> str:
    """Escape as ``{{ value }}`` does."""
    return escape(value) if type(value) is str else conditional_escape(localize(value))


def _escape_text(value: Any) -> str:
    """Escape as ``{{ value|stringformat:'s' }}`` does."""
    if type(value) is str:
        return escape(value)
    return str(value) if isinstance(value, SafeData) else escape(str(value))


WRITERS: dict[str, Callable[[Widget], str]] = {
    **{f"{FOLDER}{name}.html": _write_input for name in INPUTS},
    f"{FOLDER}textarea.html": _write_textarea,
    f"{FOLDER}select.html": _write_select,
    "signalbox/forms/text_or_empty.html": _write_text_or_empty,
}
