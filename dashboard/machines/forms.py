"""The form for a new instance: id, data fields of the declared types, a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.form_views import make_key
from dashboard.shared.version_view import VersionView
from machines.engine import errors
from machines.instances.actions import propose_id
from machines.instances.forms import REASON_LIMIT, PageForm, TypedForm


class CreateForm(PageForm):
    id = forms.CharField(max_length=200, required=False, strip=False)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="create-%s")


class Creation:
    """Combines the forms of a new instance. ``code``: the code of the last error."""

    def __init__(self, view: VersionView, sent: Mapping[str, Any] | None = None) -> None:
        self.view = view
        self.form = CreateForm(sent)
        self.data = TypedForm(view.outline.data, prefix="data", id_prefix="new", data=sent)
        self.key = (sent.get("key") if sent else "") or propose_id() or make_key()
        self.code = MISTAKE

    def is_valid(self) -> bool:
        # Both run, so that all errors are shown at once.
        return all([self.form.is_valid(), self.data.is_valid()])

    @property
    def has_mistakes(self) -> bool:
        return bool(self.form.errors or self.data.errors)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``Engine.create`` that were entered. Call it after ``is_valid()``."""
        cleaned = self.form.cleaned_data
        return {
            "id": cleaned["id"] or None,
            "data": self.data.values() or None,
            "key": cleaned["key"] or None,
            "reason": cleaned["reason"],
        }

    def blame(self, error: errors.SignalboxError) -> None:
        """Add an error of the engine to its field. The key was not used: it stays valid."""
        self.code = error.code
        if isinstance(error, errors.BadPayload):
            self.data.blame(error.field, error.message)
        else:
            self.form.add_error("id", error.message)
