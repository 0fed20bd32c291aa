"""Widgets written in Python are those of Django's templates, character by character."""

from __future__ import annotations

import re

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from machines.engine.definitions import FieldOutline
from machines.instances.forms import WRITERS, PageForm, TypedForm, WidgetWriter
from tests.cases import for_each

HOSTILE = """<script>alert("1")</script> &amp; 'x' {{ x }} %s"""
CHOICES = [("", "any"), (1, "one"), (HOSTILE, HOSTILE), ("Group & co", [("a", "A"), (2.5, 2.5)]), (True, None)]


class Everything(PageForm):
    text = forms.CharField(widget=forms.TextInput({"data-x": HOSTILE, "autofocus": True, "hidden": False, "size": 3}))
    safe = forms.CharField(widget=forms.TextInput({"data-x": mark_safe("a&amp;b")}))
    number = forms.IntegerField(min_value=1, max_value=5000, help_text="few")
    floating = forms.FloatField(required=False)
    hidden = forms.CharField(widget=forms.HiddenInput)
    password = forms.CharField(widget=forms.PasswordInput)
    area = forms.CharField(required=False, widget=forms.Textarea({"rows": 2}))
    box = forms.BooleanField(required=False)
    one = forms.ChoiceField(choices=CHOICES, required=False)
    many = forms.MultipleChoiceField(choices=CHOICES, required=False)
    maybe = forms.NullBooleanField(required=False)
    each = forms.MultipleChoiceField(choices=CHOICES, widget=forms.CheckboxSelectMultiple, required=False)
    radio = forms.ChoiceField(choices=CHOICES, widget=forms.RadioSelect, required=False)
    moment = forms.DateTimeField(required=False)
    label = forms.ChoiceField(choices=[("x", format_html("<b>{}</b>", HOSTILE))])


GIVEN = [
    {},
    {
        "text": HOSTILE,
        "number": "x",
        "area": f"\n{HOSTILE}",
        "one": "1",
        "many": ["1", "a"],
        "box": "on",
        "each": ["a"],
    },
    {"text": "", "number": 1234567, "floating": 1234.5, "area": "", "one": HOSTILE, "radio": "2.5", "maybe": "true"},
]


@pytest.mark.parametrize("given", [None, *GIVEN])
def test_a_widget_is_what_its_template_makes_of_it(given):
    ours = Everything(given)
    theirs = Everything(given, renderer=DjangoTemplates())
    for name in ours.fields:
        assert str(ours[name]) == str(theirs[name]), name
    assert str(ours) == str(theirs)


@for_each("kind", ["string", "integer", "number", "boolean", "array", "any"])
def test_a_field_of_a_definition_is_what_its_templates_make_of_it(kind):
    outlines = [FieldOutline("a", (kind,), HOSTILE), FieldOutline("b", (kind,), required=True)]
    data = {"payload-a_0": HOSTILE, "payload-a": HOSTILE}
    for given in (None, data):
        form = TypedForm(outlines, is_open=True, data=given)
        ours = [_close_up(str(form[name])) for name in form.fields]
        form.renderer = DjangoTemplates()
        assert ours == [_close_up(str(form[name])) for name in form.fields]


def _close_up(text: str) -> str:
    """Without the line breaks that a template has between its elements."""
    return re.sub(r"\s+", " ", re.sub(r">\s+", ">", text))


def test_values_are_escaped():
    assert "<script>" not in str(Everything({"text": HOSTILE, "one": HOSTILE, "area": HOSTILE}))


def test_each_writer_stands_for_a_template_of_django():
    for name in WRITERS:
        assert WidgetWriter().get_template(name)


def test_the_forms_of_pages_use_it():
    assert isinstance(Everything().renderer, WidgetWriter)
    assert isinstance(TypedForm([]).renderer, WidgetWriter)
