"""Filters of the reference of the API: what a schema is, and text between backticks as code."""

import re

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from dashboard.api.framework import schema_types

register = template.Library()
for words in (schema_types.describe_default, schema_types.describe_type, schema_types.find_name):
    register.filter(words)
CODE = re.compile(r"``?([^`]+)``?")


@register.filter
def mark_code(text: str) -> SafeString:
    """Mark text between backticks as code; everything is escaped."""
    parts = CODE.split(text)
    return format_html_join("", "{}{}", (_pair(plain, number) for number, plain in enumerate(parts)))


def _pair(text: str, number: int) -> tuple[str, SafeString]:
    return (
        ("", format_html_join("", '<span class="key">{}</span>', [(text,)])) if number % 2 else (text, SafeString(""))
    )
