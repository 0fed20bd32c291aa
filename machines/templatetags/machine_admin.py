"""Filters of the admin's screens."""

import json
from typing import Any

from django import template
from django.utils.html import format_html

from machines.conf import conf
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


@register.simple_tag
def environment() -> dict[str, str]:
    """Return the name and colour of this installation; an empty dict if it has none."""
    return dict(conf.ENVIRONMENT)


@register.simple_tag(takes_context=True)
def nonce(context: template.Context) -> str:
    """Write the attribute that the project's Content-Security-Policy asks for: Django's own, or that of django-csp."""
    found = read_nonce(context.get("request"))
    return "" if found is None else format_html(' nonce="{}"', found)


def read_nonce(request: Any) -> Any:
    """Return the nonce of a request as a middleware made it; None where there is none."""
    found = getattr(request, "csp_nonce", None)
    return getattr(request, "_csp_nonce", None) if found is None else found
