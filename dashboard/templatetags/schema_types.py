"""Filters that say what a schema of the OpenAPI document is."""

from __future__ import annotations

from django import template

from dashboard.api.framework import schema_types

register = template.Library()
register.filter(schema_types.describe_default)
register.filter(schema_types.describe_type)
register.filter(schema_types.find_name)
