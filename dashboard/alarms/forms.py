"""The forms of the actions on alarms, of their routes, and the filter of their history."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from django import forms
from django.http import HttpRequest
from django.urls import reverse

from dashboard.webhooks.forms import ReceiverForm
from machines.alarms import routes
from machines.alarms.alarm import KINDS, SEVERITIES
from machines.alarms.models import KEY_LENGTH
from machines.engine.limits import MAX_NAME
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.models import AlarmEvent
from machines.webhooks import management

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

    def arguments(self) -> dict[str, Any]:
        return self.cleaned_data


class OwnerForm(KeyForm):
    """``owner``: blank gives the alarm up."""

    owner = forms.CharField(required=False, max_length=150)


class SnoozeForm(KeyForm):
    minutes = forms.ChoiceField(label="for", choices=DURATIONS)
    reason = forms.CharField(max_length=REASON_LIMIT)

    def arguments(self) -> dict[str, Any]:
        minutes = int(self.cleaned_data.pop("minutes"))
        return self.cleaned_data | {"duration": timedelta(minutes=minutes)}


FORMS = {
    "acknowledge": (KeyForm, "Acknowledged"),
    "assign": (OwnerForm, "Owner saved"),
    "snooze": (SnoozeForm, "Snoozed"),
    "wake": (KeyForm, "Snooze ended"),
}
"""Action -> its form, and what is said of it."""


class RouteForm(ReceiverForm):
    """``written``: of a route that has an address, which stays where the field is blank."""

    noun, lists = "route", ("machines", "kinds")

    name = forms.CharField(label="name", max_length=management.LONGEST_NAME)
    url = forms.CharField(
        label="address",
        max_length=2000,
        widget=forms.TextInput({"placeholder": "slack://… or https://…", "autocomplete": "off"}),
        help_text="of apprise (slack://, msteams://, pagerduty://, mailto://, …), or https:// for a signed webhook",
    )
    severity = forms.ChoiceField(
        label="severity",
        choices=[("critical", "critical"), ("warning", "warning and critical"), ("info", "all")],
        initial="warning",
    )
    machines = forms.CharField(
        label="machines", required=False, help_text="comma-separated names; blank: all machines and the installation"
    )
    kinds = forms.CharField(
        label="kinds", required=False, help_text=f"comma-separated; blank: all of {', '.join(KINDS)}"
    )
    hours = forms.CharField(
        label="hours", required=False, help_text="mon-fri 08:00-18:00, sat 09:00-12:00; blank: always"
    )
    zone = forms.CharField(label="time zone", initial="UTC", help_text="of the hours, such as Europe/Paris")
    after = forms.IntegerField(
        label="minutes without an owner",
        initial=0,
        min_value=0,
        max_value=routes.LONGEST_AFTER,
        help_text="0: at once; more: only alarms that nobody has taken by then",
    )
    link = forms.CharField(
        label="link", required=False, max_length=2000, help_text="to the page Alarms, as its readers reach it"
    )

    def __init__(self, *args: Any, written: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        if written:
            self.fields["url"].required = False
            self.fields["url"].help_text = "blank: the address stays as it is; it is not shown again"

    @classmethod
    def blank(cls, request: HttpRequest) -> Self:
        return cls(initial={"link": request.build_absolute_uri(reverse("signalbox:alarms"))})


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
