"""Activates each person's time zone and clock while their request is answered, on the pages and in the admin."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.db import router
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from dashboard.models import Preferences
from dashboard.site.mount_point import is_for_machines
from machines.conf.database import PreparedQuery
from machines.people import last_seen

from ..async_middleware import AsyncMiddleware
from ..errors.redis_outage import CAUSES
from . import times

FIELDS = Preferences._meta.concrete_fields
_kept = PreparedQuery(
    Preferences,
    lambda pk: Preferences.objects.filter(user_id=pk).values_list(*(field.attname for field in FIELDS)),
)


class TimeZoneMiddleware(AsyncMiddleware):
    """Sets ``request.preferences``, activates time zone and clock, and records that the person was seen.

    It sits behind the authentication.
    """

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        if is_for_machines(request):
            return self.get_response(request)
        with self._apply(request, _read_preferences(request.user)):
            return self.get_response(request)

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        if is_for_machines(request):
            return await self.get_response(request)
        with self._apply(request, await sync_to_async(_read_preferences)(request.user)):
            return await self.get_response(request)

    @contextlib.contextmanager
    def _apply(self, request: HttpRequest, preferences: Preferences) -> Iterator[None]:
        request.preferences = preferences
        token = times.clock.set(preferences.clock)
        try:
            with timezone.override(zone_of(preferences.time_zone)):
                yield
        finally:
            times.clock.reset(token)


def preferences_of(user: Any) -> Preferences:
    """Return the preferences of the user, or unsaved defaults. One query.

    While the sessions' Redis is away the user is unknown; the view and the outage page handle that.
    """
    try:
        if user.is_authenticated:
            return _read_kept(user.pk) or Preferences(user=user)
    except CAUSES:
        pass
    return Preferences()


def _read_kept(pk: Any) -> Preferences | None:
    for row in _kept.rows(pk):
        values = [field.to_python(value) for field, value in zip(FIELDS, row, strict=True)]
        return Preferences.from_db(router.db_for_read(Preferences), [field.attname for field in FIELDS], values)
    return None


def _read_preferences(user: Any) -> Preferences:
    kept = preferences_of(user)
    if kept.user_id:
        last_seen.noting.person(kept.user_id)
    return kept


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name, or the site's if it does not exist (any more)."""
    if name in _list_zone_names():
        return ZoneInfo(name)
    return timezone.get_default_timezone()


def is_zone(name: str) -> bool:
    return name in _list_zone_names()


@functools.cache
def choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """List the time zones for a select, by continent, and UTC."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(_list_zone_names()):
        continent, _, place = name.partition("/")
        if place and continent in CONTINENTS:
            groups.setdefault(continent, []).append((name, place.replace("_", " ")))
    return [("Everywhere", [("UTC", "UTC")]), *groups.items()]


CONTINENTS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


@functools.cache
def _list_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())
