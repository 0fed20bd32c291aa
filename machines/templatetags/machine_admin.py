"""Filters of the admin's screens."""

from __future__ import annotations

import json
from typing import Any

from django import template

from machines.diagrams import EventWords
from machines.engine import Step

register = template.Library()


@register.filter
def event_words(words: EventWords, step: Step) -> str:
    """Return the event of a step in the words of the diagram."""
    return words.describe(step.event, step.payload)


@register.filter
def as_json(value: Any) -> str:
    """Return a value the way definitions write it: text in quotes, ``true``, ``null``."""
    return json.dumps(value, ensure_ascii=False)
