"""Forms that move a state machine under an SM key."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from machines.instances.forms import REASON_LIMIT
from machines.instances.forms.rendering import PageForm


class StateName(forms.CharField):
    """Parses a state name written as JSON, since browsers change line ends in what they send."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        super().__init__(max_length=30_000, strip=False, error_messages={"required": "Choose a state."})

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        try:
            name = json.loads(text)
            name.encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError, AttributeError):
            raise forms.ValidationError("Invalid state name.") from None
        return str(name)


class MoveForm(PageForm):
    """Moves the machine. ``seen``: the state at the time the form was made, which must still be current."""

    state = StateName()
    seen = StateName()
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)


class ForcedMoveForm(MoveForm):
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is stored as the reason of the state."}
    )
