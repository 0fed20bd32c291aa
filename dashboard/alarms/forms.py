"""The forms of the actions on alarms, and the filter of their history."""

from __future__ import annotations

from datetime import timedelta

from django import forms

from machines.alarms.alarm import KINDS, SEVERITIES
from machines.alarms.models import KEY_LENGTH
from machines.engine.limits import MAX_NAME
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.models import AlarmEvent

DURATIONS = [
    ("30", "30 minutes"),
    ("60", "1 hour"),
    ("240", "4 hours"),
    ("480", "8 hours"),
    ("1440", "1 day"),
    ("4320", "3 days"),
    ("10080", "7 days"),
]
"""Minutes, and their label."""


class KeyForm(PageForm):
    key = forms.CharField(max_length=KEY_LENGTH)


class OwnerForm(KeyForm):
    """``owner``: blank gives the alarm up."""

    owner = forms.CharField(required=False, max_length=150)


class SnoozeForm(KeyForm):
    minutes = forms.ChoiceField(label="for", choices=DURATIONS)
    reason = forms.CharField(max_length=REASON_LIMIT)

    @property
    def duration(self) -> timedelta:
        return timedelta(minutes=int(self.cleaned_data["minutes"]))


class AlarmFilter(PageForm):
    severity = forms.ChoiceField(required=False, choices=[("", "all"), *((name, name) for name in SEVERITIES)])
    machine = forms.CharField(required=False, max_length=MAX_NAME)


class HistoryFilter(PageForm):
    """Filters the history. ``before``: the id of an event, for the next page."""

    event = forms.ChoiceField(label="event", required=False, choices=[("", "all"), *AlarmEvent.Event.choices])
    kind = forms.ChoiceField(label="kind", required=False, choices=[("", "all"), *((name, name) for name in KINDS)])
    machine = forms.CharField(label="machine", required=False, max_length=MAX_NAME)
    key = forms.CharField(required=False, max_length=KEY_LENGTH, widget=forms.HiddenInput)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)
