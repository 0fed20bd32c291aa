"""Filters of the admin's screens."""

from __future__ import annotations

import json
from typing import Any

from django import template

register = template.Library()


@register.filter
def as_json(value: Any) -> str:
    """A value the way definitions write it: text in quotes, ``true``, ``null``."""
    return json.dumps(value, ensure_ascii=False)
