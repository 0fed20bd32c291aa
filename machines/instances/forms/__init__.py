"""Django forms for fields that a definition declares: an event's payload, an instance's data. Pages and admin share
them.

A field that is left blank is not sent at all; that is how an optional field stays out of the payload.
An empty text is sent by saying so: a box beside each text, or ``""`` read as JSON where any type is taken.
"""

from __future__ import annotations

from .inputs import JsonText, field_for
from .step import REASON_LIMIT, StepForm
from .typed import TypedForm

__all__ = ["REASON_LIMIT", "JsonText", "StepForm", "TypedForm", "field_for"]
