"""The form of one event in the admin: its payload's fields, and what goes with every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.forms import BoundField

from machines.engine.definitions import EventOutline
from machines.forms import StepForm, TypedForm


class EventForm:
    """Two forms sent as one, so that a payload may have a field called ``reason`` too."""

    def __init__(self, outline: EventOutline, *, number: int, data: Mapping[str, Any] | None = None) -> None:
        self.outline = outline
        self.fields = TypedForm(outline.fields or (), is_open=outline.open, id_prefix=f"id_{number}", data=data)
        self.step = StepForm(data, auto_id=f"id_{number}_%s")

    def is_valid(self) -> bool:
        # Both are asked, so that every mistake is shown at once.
        return all([self.fields.is_valid(), self.step.is_valid()])

    def inputs(self) -> list[BoundField]:
        """Those an operator sees."""
        return [*self.fields, self.step["reason"]]

    def payload(self) -> dict[str, Any]:
        """What was entered; a field left blank is not sent. Only after ``is_valid()``."""
        return self.fields.values()

    @property
    def expect(self) -> int:
        return self.step.cleaned_data["expect"]

    @property
    def reason(self) -> str:
        return self.step.cleaned_data["reason"]

    def blame(self, field: str | None, message: str) -> None:
        """Put an error of the engine beside the input it is about."""
        self.fields.blame(field, message)
