"""URL converters for names that people and machines choose freely.

An instance id may be any text. Two characters cannot stand in a path segment however they are
quoted: a slash, because servers decode ``%2F`` before the path is split, and a leading dot, because browsers
resolve ``.`` and ``..`` (and ``%2E%2E``) before they ask. Those are written ``~2F`` and ``~2E``, and the tilde
itself ``~7E``, so that every id has exactly one URL; URL quoting does the rest.
"""

from __future__ import annotations

from functools import cache

from django.urls import register_converter


class InstanceId:
    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return value.replace("~2F", "/").replace("~2E", ".").replace("~7E", "~")

    def to_url(self, value: str) -> str:
        escaped = value.replace("~", "~7E").replace("/", "~2F")
        return f"~2E{escaped[1:]}" if escaped.startswith(".") else escaped


class Name:
    """Matches a machine or queue name, as the engine accepts them."""

    regex = "[A-Za-z_][A-Za-z0-9_.-]{0,63}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class JobId(Name):
    """Matches ``<partition>-<number>``, as the engine numbers jobs."""

    regex = "[0-9]{1,5}-[0-9]{1,16}"


@cache
def register() -> None:
    """Register ``<instance:id>``, ``<name:machine>``, ``<job:id>``. Every module with such URL patterns calls it."""
    register_converter(JobId, "job")
    register_converter(InstanceId, "instance")
    register_converter(Name, "name")
