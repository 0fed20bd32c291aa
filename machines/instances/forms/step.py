"""The form fields of every step beside its payload: reason and expected revision."""

from __future__ import annotations

from django import forms

from machines.engine.limits import MAX_REASON as REASON_LIMIT

from .rendering import PageForm


class StepForm(PageForm):
    """``expect`` is the revision the operator saw: a step in between makes the form a conflict.

    The page writes it into the form itself, so that a second try is on what is shown then.
    """

    expect = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False, help_text="recorded in the history")
