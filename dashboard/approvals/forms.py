"""The filter of the list of approval requests, and the form of a decision."""

from __future__ import annotations

from django import forms

from machines.engine.limits import MAX_NAME
from machines.instances.forms import REASON_LIMIT
from machines.instances.forms.rendering import PageForm
from machines.models import Approval

STATES = [("open", "waiting"), ("decided", "decided"), ("", "all")]


class RequestFilter(PageForm):
    """Filters the list. ``before``: the id of a request, for the next page."""

    state = forms.ChoiceField(required=False, choices=[*STATES, *Approval.State.choices])
    machine = forms.CharField(required=False, label="machine", max_length=MAX_NAME)
    before = forms.IntegerField(required=False, min_value=1)


class DecisionForm(PageForm):
    note = forms.CharField(required=False, max_length=REASON_LIMIT)
