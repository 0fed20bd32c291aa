"""Forms of the account pages: preferences, and a new API token."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.models import Preferences
from dashboard.shared import times
from dashboard.shared.form_views import make_key
from machines.catalog.builtin_machines import split_system
from machines.instances.forms import PageForm
from machines.models import Machine
from machines.people.permissions import MEANINGS, anywhere, scope_of
from machines.people.tokens import MAX_DAYS


class PreferencesForm(forms.ModelForm):
    default_renderer = PageForm.default_renderer

    time_zone = forms.ChoiceField(label="time zone", choices=times.choices)

    class Meta:
        model = Preferences
        fields = ("theme", "time_zone", "clock", "calm", "keys")
        labels = {"theme": "theme", "clock": "clock", "calm": "reduced motion", "keys": "keyboard shortcuts"}
        help_texts = {
            "calm": "Numbers update every five seconds, without animation.",
            "keys": "Press ? to list them. Turn them off if voice control or a screen reader uses single keys.",
        }


class TokenForm(PageForm):
    name = forms.CharField(
        label="name", max_length=80, widget=forms.TextInput({"autocomplete": "off"}),
        help_text="Describes the use of the token. Shown in lists and in the audit.",
        error_messages={"required": "Enter a name."},
    )  # fmt: skip
    rights = forms.MultipleChoiceField(label="rights", required=False, widget=forms.CheckboxSelectMultiple)
    machines = forms.MultipleChoiceField(
        label="machines", required=False, widget=forms.SelectMultiple({"size": "6"}),
        help_text="None selected: all machines you have access to, including future ones.",
    )  # fmt: skip
    days = forms.IntegerField(
        label="valid for (days)", min_value=1, max_value=MAX_DAYS, initial=90,
        widget=forms.TextInput({"inputmode": "numeric", "autocomplete": "off"}), help_text="Max 365.",
    )  # fmt: skip
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, user: Any, data: Any = None) -> None:
        super().__init__(data, auto_id="token-%s", label_suffix="", initial={"rights": ["view"], "key": make_key()})
        held = [(right, f"{right}: {meaning}") for right, meaning in MEANINGS.items() if anywhere(user, right)]
        self.fields["rights"].choices = held
        scope, names = scope_of(user), Machine.objects.values_list("name", flat=True)
        own, system = split_system(name for name in names if name in scope)
        groups = [("System", [(name, name) for name in system])] if system else []
        self.fields["machines"].choices = [*((name, name) for name in own), *groups]
