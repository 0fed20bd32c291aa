"""Filters the audit by the terms in an address, and pages through it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from machines.engine.limits import MAX_ACTOR, MAX_INSTANCE_ID, MAX_NAME
from machines.instances.forms import PageForm
from machines.models import AuditEntry
from machines.people.permissions import Scope

from .sentences import list_choices

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
TIMES = ("since", "until")
CURSOR = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
TARGET_LIMIT = 1000  # characters


class TimeField(forms.CharField):
    """Parses ``2026-11-21`` or ``2026-11-21T08:30``, in the person's time zone unless there is an offset."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})

    def clean(self, value: Any) -> datetime | None:
        text = super().clean(value)
        return _parse_time(text) if text else None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the time in the form that the browser's input takes."""
        try:
            return f"{timezone.localtime(_parse_time(data)):%Y-%m-%dT%H:%M:%S}" if data else data
        except forms.ValidationError:
            return data


class AuditFilter(PageForm):
    """Filters audit entries. Empty terms do not filter."""

    actor = forms.CharField(required=False, max_length=MAX_ACTOR, label="person")
    action = forms.ChoiceField(required=False, label="action", choices=[("", "any"), *list_choices()])
    outcome = forms.ChoiceField(required=False, label="outcome", choices=[("", "any"), *AuditEntry.Outcome.choices])
    machine = forms.CharField(required=False, label="machine", max_length=MAX_NAME)
    instance = forms.CharField(required=False, label="instance", max_length=MAX_INSTANCE_ID, strip=False)
    queue = forms.CharField(required=False, label="queue", max_length=MAX_NAME)
    target = forms.CharField(required=False, label="event, state, job or worker", max_length=TARGET_LIMIT, strip=False)
    request = forms.CharField(required=False, label="request", max_length=40)
    since = TimeField(required=False, max_length=40, label="from")
    until = TimeField(required=False, max_length=40, label="before")

    def __init__(self, asked: Mapping[str, Any], scope: Scope) -> None:
        super().__init__(asked, auto_id="audit-%s")
        self._scope = scope

    @property
    def given(self) -> dict[str, str]:
        """Return the terms that filter, with times in UTC, so that the address means the same to everybody.

        Call it after ``is_valid()``.
        """
        asked = {name: self.data[name] for name in self.fields if self.data.get(name) and self.cleaned_data[name]}
        times = {name: self.cleaned_data[name] for name in asked if name in TIMES}
        return asked | {name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in times.items()}

    def entries(self) -> QuerySet[AuditEntry]:
        """Return the entries of the machines in scope, newest first.

        Entries that concern no machine are for viewers of all machines. Call it after ``is_valid()``.
        """
        times = {"at__gte": self.cleaned_data["since"], "at__lt": self.cleaned_data["until"]}
        terms = {name: term for name, term in (self.cleaned_data | times).items() if term and name not in TIMES}
        found = AuditEntry.objects.filter(**terms)
        return self._scope.narrow(found)


def older_than(entries: QuerySet[AuditEntry], cursor: str) -> QuerySet[AuditEntry]:
    """Return the entries after the cursor. Raise ValueError if the cursor is invalid."""
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise ValueError(f"no cursor of the audit: {cursor[:40]!r}")
    at = EPOCH + int(found[1]) * TICK  # so few digits stay within the calendar
    # The first of the two conditions says nothing new, and lets the index find the place.
    return entries.filter(Q(at__lte=at) & (Q(at__lt=at) | Q(id__lt=int(found[2]))))


def make_cursor(entry: AuditEntry) -> str:
    """Return the cursor at which the entries older than this one begin."""
    return f"{(entry.at - EPOCH) // TICK}-{entry.pk}"


def _parse_time(text: str) -> datetime:
    try:
        at = parse_datetime(text)
        if at is None and (day := parse_date(text)) is not None:
            at = datetime.combine(day, time.min)
        if at is not None:
            return (timezone.make_aware(at) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise forms.ValidationError("Write a time as 2026-11-21T08:30, or a day as 2026-11-21.")
