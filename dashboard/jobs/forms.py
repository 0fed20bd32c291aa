"""Forms of actions on queues and jobs. Each asks for a reason."""

from typing import Any

from django import forms

from machines.engine import limits, rates
from machines.instances.forms import REASON_LIMIT, PageForm

PLAIN = {"autocomplete": "off"}
FIGURE = {"autocomplete": "off", "inputmode": "numeric"}
PURGED = ("ready", "delayed", "dead", "handled")
NO_LIMIT = "none"


class Count(forms.IntegerField):
    """Parses a number with or without commas, as the page shows it."""

    def to_python(self, value: Any) -> int | None:
        return super().to_python(value.replace(",", "") if isinstance(value, str) else value)


class ActionForm(PageForm):
    """Asks what an action takes. ``id``: the prefix of its fields' ids, since a page may have many such forms."""

    def __init__(self, *args: Any, id: str, **more: Any) -> None:
        super().__init__(*args, auto_id=f"{id}-%s", label_suffix="", use_required_attribute=True, **more)


class ReasonForm(ActionForm):
    reason = forms.CharField(
        label="reason",
        max_length=REASON_LIMIT,
        widget=forms.TextInput(PLAIN),
        error_messages={"required": "Enter a reason. It is recorded in the audit."},
    )


class HandledForm(ReasonForm):
    """Confirms the retry of a job whose instance has dealt with its death."""

    confirm = forms.BooleanField(
        label="run it although its instance moved on",
        error_messages={"required": "Confirm that the job is to run although its instance moved on."},
    )
    field_order = ("confirm", "reason")


class PurgeForm(ReasonForm):
    """Confirms a purge by the number of jobs: the operator types it from the page."""

    place = forms.ChoiceField(choices=[(place, place) for place in PURGED], widget=forms.HiddenInput)
    expect = Count(
        min_value=1,
        max_value=limits.MAX_INTEGER,
        widget=forms.TextInput(FIGURE),
        error_messages={"required": "Enter the number of jobs shown.", "invalid": "Enter a number of jobs."},
    )
    field_order = ("place", "expect", "reason")

    def __init__(self, *args: Any, places: dict[str, int], **more: Any) -> None:
        """Offer the places with jobs that can be purged, with their counts in ``places``."""
        super().__init__(*args, **more)
        if len(places) == 1:
            (count,) = places.values()
            self.fields["expect"].label = f"enter {count:,} to confirm"
        else:
            self.fields["place"].widget = forms.Select(choices=[(name, f"{name}: {n:,}") for name, n in places.items()])
            self.fields["expect"].label = "enter the number of jobs to confirm"


class LimitForm(ReasonForm):
    concurrency = Count(
        label="max concurrent jobs",
        required=False,
        min_value=0,
        max_value=limits.MAX_CONCURRENCY,
        widget=forms.TextInput(FIGURE),
        help_text="0: no limit. Blank: as the definition declares.",
    )
    rate = forms.CharField(
        label="rate",
        required=False,
        max_length=20,
        widget=forms.TextInput(PLAIN),
        help_text='"100/s", "30/m", "5/10s burst 20", or "none". Blank: as the definition declares.',
    )
    field_order = ("concurrency", "rate", "reason")

    def clean_rate(self) -> str | None:
        rate = self.cleaned_data["rate"].strip()
        if rate and rate != NO_LIMIT and rates.QueueRate.parse(rate) is None:
            raise forms.ValidationError(f"Invalid rate: {rates.RATE_HINT}.")
        return rate or None


class GroupLimitForm(LimitForm):
    """Asks for the name of the group, too."""

    group = forms.CharField(label="group", max_length=200, strip=False, widget=forms.TextInput(PLAIN))
    field_order = ("group", "concurrency", "rate", "reason")
