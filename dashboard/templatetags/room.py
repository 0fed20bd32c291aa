"""Filters and tags of templates: ages, figures, JSON values."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.mount_point import live_path
from dashboard.pages.machines.diagram_modes import DEFAULT
from dashboard.pages.shared import addresses
from dashboard.pages.shared.navigation import NavigationLink, list_navigation_links
from dashboard.serving.live_view import is_served_to
from dashboard.shared import instance_filter, times
from machines.access.redaction import MASK
from machines.audit.request_context import request_id
from machines.conf import conf

if TYPE_CHECKING:
    from dashboard.pages.instances.replay import Replay
    from dashboard.pages.machines.instance_list import InstanceList
    from dashboard.shared.time_fields import TimeFields
    from machines.engine import Job, Step

register = template.Library()


@register.simple_tag(takes_context=True)
def ago(context: Context, ms: float | None) -> SafeString:
    """``<time>3 min</time>`` with the exact time in its title; the script ticks it from ``data-at`` (ms)."""
    return _time(ms, context, "ago")


@register.simple_tag(takes_context=True)
def until(context: Context, ms: float | None) -> SafeString:
    """The same for a time to come: ``in 12 s``, and ``overdue 3 s`` once it is past."""
    return _time(ms, context, "until")


@register.simple_tag
def request_of() -> str:
    """The id of the request that is being answered."""
    return request_id.get()


def _time(ms: float | None, context: Context, kind: str) -> SafeString:
    if not ms:
        return format_html("{}", "–")
    now = context.get("now_ms") or time.time() * 1000
    return format_html(
        '<time class="tick" datetime="{}" title="{}" data-at="{}" data-kind="{}">{}</time>',
        times.format_iso(ms),
        times.format_utc(ms),
        int(ms),
        kind,
        (times.format_until if kind == "until" else times.format_age)((now - ms) / 1000),
    )


@register.simple_tag(takes_context=True)
def stamp(context: Context, name: str, value: Any) -> SafeString:
    """The time that a data field's number says, in small print; nothing where it is no time."""
    stamps: TimeFields | None = context.get("stamps")
    ms = stamps.moment(name, value) if stamps else None
    if ms is None:
        return SafeString("")
    return format_html(
        ' <time class="stamp" datetime="{}" title="{}">{}</time>',
        times.format_iso(ms),
        times.format_utc(ms),
        times.format_local(ms),
    )


@register.simple_tag
def job_url(job: Job) -> str:
    return addresses.job_url(job)


@register.filter
def figure(number: Any) -> str:
    """12,345: the same grouping in every language, so that columns line up."""
    return f"{number:,}" if isinstance(number, int) else str(number)


@register.filter
def size(bytes: int) -> str:
    """How much memory: ``12 kB``, ``84 MB``, ``1.2 GB``; a dash where it is not known."""
    if bytes <= 0:
        return "–"
    if bytes < 999_500:
        return f"{max(1, round(bytes / 1e3)):,} kB"
    return f"{bytes / 1e6:,.0f} MB" if bytes < 999_500_000 else f"{bytes / 1e9:,.1f} GB"


@register.filter
def value(anything: Any) -> str:
    """A data value as its JSON text: a string keeps its quotes, so that "" and "3" cannot be mistaken.

    What is masked is no string.
    """
    return MASK if anything == MASK else json.dumps(anything, ensure_ascii=False, default=str)


@register.filter
def masked(anything: Any) -> bool:
    """Says whether a value is redacted."""
    return bool(anything == MASK)


@register.filter
def pretty(anything: Any) -> str:
    """The same, over several lines."""
    return json.dumps(anything, ensure_ascii=False, indent=2, default=str)


@register.filter
def sought_for(terms: dict[str, Any]) -> list[tuple[str, str]]:
    """What a bulk was found by, as pairs of words."""
    return instance_filter.describe_filter(terms)


@register.filter
def span(ms: float | None) -> str:
    """How long something took."""
    return "–" if ms is None else times.format_duration(ms)


@register.filter
def moment(ms: float) -> SafeString:
    """``<time>21 Nov 2026, 03:22:03 UTC+1</time>``: in the person's zone, with UTC in its title."""
    return times.format_element(ms)


@register.filter
def clock(ms: float) -> str:
    """``03:22:03 UTC+1``: the time of day in the person's zone."""
    return times.format_time_of_day(ms)


@register.simple_tag
def places_of(user: Any) -> list[NavigationLink]:
    """What the bar links to."""
    return list_navigation_links(user)


@register.simple_tag
def live_url(request: HttpRequest | None) -> str:
    """The address of the websocket; empty where the server that answers takes none, and the page polls."""
    return live_path() if is_served_to(request) else ""


@register.simple_tag
def admin_url(user: Any) -> str:
    """The address of the admin; empty where there is none, or the person may not use it."""
    if not getattr(user, "is_staff", False):
        return ""
    with contextlib.suppress(NoReverseMatch):
        return reverse("admin:index")
    return ""


@register.simple_tag
def logout_url() -> str:
    """Where the button to log out leads: what the project names, or the view that ends the session."""
    return resolve_url(conf.LOGOUT_URL or "signalbox:logout")


@register.simple_tag
def zone() -> str:
    """``Europe/Paris``: the person's zone."""
    return timezone.get_current_timezone_name()


@register.filter
def left(step: Step) -> list[str]:
    """The leaf states that a step left; in the other regions nothing happened."""
    return [name for name in step.source or () if name not in step.configuration]


@register.filter
def entered(step: Step) -> list[str]:
    """The leaf states that a step led to; all of them where it left none."""
    return [name for name in step.configuration if name not in (step.source or ())] or step.configuration


@register.simple_tag
def querystring_of(**terms: Any) -> str:
    """``?state=Waiting``: a query string with its values quoted."""
    return f"?{urlencode(terms)}"


@register.filter
def with_state(listing: InstanceList, state: str) -> str:
    """The address of the same list for another state, from its first page."""
    return listing.url(state=state, cursor=None)


@register.filter
def at_moment(replay: Replay, version: int) -> str:
    """The address of the same instance as it was at a version."""
    return replay.url(at=version)


@register.filter
def against(replay: Replay, version: int) -> str:
    """The address of the moment shown, compared with another one."""
    return replay.url(**{"with": version})


@register.filter
def before_version(replay: Replay, version: int) -> str:
    """The address of the moment shown, with the steps before a version in its list."""
    return replay.url(before=version)


@register.filter
def in_mode(listing: InstanceList, mode: str) -> str:
    """The address of the same list under a diagram that tells something else."""
    return listing.url(mode=None if mode == DEFAULT.name else mode)


@register.filter
def at_cursor(listing: InstanceList, cursor: str) -> str:
    return listing.url(cursor=cursor)


@register.filter
def of(rows: dict[str, Any], id: str) -> Any:
    """What a table holds for an id; nothing where it holds none."""
    return rows.get(id, ())


@register.filter
def before_cursor(listing: InstanceList, start: str) -> str:
    return listing.before_url(start)
