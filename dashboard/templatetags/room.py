"""Filters and tags of templates: ages, figures, JSON values."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import template
from django.forms.utils import flatatt
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.template import Context, defaulttags
from django.template.base import Parser, Token
from django.template.defaulttags import URLNode
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from dashboard.instances.instance_list import write_rows
from dashboard.serving.live_view import is_served_to
from dashboard.shared import addresses, times
from dashboard.shared.addresses import JobId
from dashboard.shared.diagram_modes import format_share
from dashboard.shared.navigation import list_navigation_links
from dashboard.shared.search import instance_filter
from dashboard.shared.themes import theme_of
from dashboard.site import command_lines
from dashboard.site.mount_point import live_path
from machines.audit.redaction import MASK
from machines.audit.request_context import request_id
from machines.conf import conf
from machines.diagrams import EventWords
from machines.insight.statistics.ages import format_duration
from machines.templatetags.machine_admin import environment

if TYPE_CHECKING:
    from dashboard.catalog.presenters import InstanceTable
    from dashboard.instances.history import HistoryWords, Replay
    from dashboard.instances.instance_list import InstanceList
    from dashboard.shared.counts import Elsewhere
    from dashboard.shared.times import TimeFields
    from machines.engine import Step

register = template.Library()
register.simple_tag(environment)
register.filter("share", format_share)
register.simple_tag(addresses.job_url)
register.filter("list_terms", instance_filter.describe_filter)
register.filter("clock", times.format_time_of_day)
register.simple_tag(list_navigation_links, name="places_of")
register.simple_tag(command_lines.write_command, name="command")
register.simple_tag(command_lines.write_engine, name="engine_call")
register.simple_tag(timezone.get_current_timezone_name, name="zone")
Time = float | datetime | str
"""Milliseconds since the epoch, as the engine has them, or a moment, as the database has it and as JSON writes it."""
ENGINE_STEPS = ("done.invoke.", "error.invoke.", "(create)")
"""Events of steps whose actor is a job or another instance."""
JOB = re.compile(JobId.regex)
SIGNS = {"ok": "✓", "warn": "▲", "stop": "⊘"}
BULK_MARK = re.compile(r" \[bulk ([^\]\s]{1,200})\]$")
"""What a bulk action writes behind the reason of each step."""


@register.simple_tag(takes_context=True)
def ago(context: Context, at: Time | None) -> SafeString:
    """Return ``<time>3 min</time>`` with the exact time in its title; the script ticks it from ``data-at`` (ms)."""
    return _time(at, context, "ago")


@register.simple_tag(takes_context=True)
def until(context: Context, at: Time | None) -> SafeString:
    """Return the same for a time to come: ``in 12 s``, and ``overdue 3 s`` once it is past."""
    return _time(at, context, "until")


@register.tag("url")
def page_url(parser: Parser, token: Token) -> URLNode:
    """Parse Django's ``{% url %}``, as a node that remembers the addresses of our pages."""
    node = defaulttags.url(parser, token)
    return AddressNode(node.view_name, node.args, node.kwargs, node.asvar)


class AddressNode(URLNode):
    """Writes the address of a page of ours by its name and ordered arguments; any other as Django does."""

    def render(self, context: Context) -> str:
        name = self.view_name.resolve(context)
        if self.asvar or self.kwargs or not name.startswith("signalbox:"):
            return str(super().render(context))
        args = [arg.resolve(context) for arg in self.args]
        if not all(isinstance(arg, str | int) for arg in args):
            return str(super().render(context))
        url = addresses.find_page_address(name, *args, current_app=_find_app(context))
        return str(conditional_escape(url)) if context.autoescape else url


def _find_app(context: Context) -> str | None:
    """Return the instance of the application that answers, as Django's tag finds it."""
    request = getattr(context, "request", None)
    try:
        return str(request.current_app)
    except AttributeError:
        match = getattr(request, "resolver_match", None)
        return match.namespace if match else None


@register.simple_tag
def request_of() -> str:
    """Return the id of the request that is being answered."""
    return request_id.get()


def _in_ms(at: Time) -> float:
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return times.in_ms(moment) if isinstance(moment, datetime) else moment


def _time(at: Time | None, context: Context, kind: str) -> SafeString:
    return times.format_ticking(at and _in_ms(at), context.get("now_ms") or time.time() * 1000, kind)


@register.simple_tag(takes_context=True)
def stamp(context: Context, name: str, value: Any) -> SafeString:
    """Return the time that a data field's number stands for, in small print; nothing if it is no time."""
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


@register.simple_tag(takes_context=True)
def id_link(context: Context, kind: str, *names: Any, text: str = "") -> SafeString:
    """Return an id as a link to its page, or as plain text if the person may not open that. ``text``: shown for the
    id."""
    request = context.get("request")
    shown = text or (names[-1] if names else "")
    user = getattr(request, "user", None)  # none on the page of a request that was refused early
    url = addresses.find_address(user, kind, *names) if user is not None else ""
    return (
        format_html('<a class="key" href="{}">{}</a>', url, shown)
        if url
        else format_html('<span class="key">{}</span>', shown)
    )


@register.simple_tag(takes_context=True)
def step_actor(context: Context, step: Step, machine: str) -> SafeString:
    """Return the actor of a step. If the engine wrote a job that ended (``job 0-1``), a parent or a child
    (``machine/id``), it is a link."""
    job, id = step.actor.removeprefix("job "), step.actor.partition("/")
    if not step.event.startswith(ENGINE_STEPS):
        return format_html("{}", step.actor or "–")
    if step.actor.startswith("job ") and JOB.fullmatch(job):
        return id_link(context, "job", machine, job, text=step.actor)
    return (
        id_link(context, "instance", id[0], id[2], text=step.actor) if id[2] else format_html("{}", step.actor or "–")
    )


@register.simple_tag(takes_context=True)
def step_reason(context: Context, step: Step, machine: str) -> SafeString:
    """Return the reason of a step. The bulk action behind it, which the engine writes at its end, is a link."""
    written = BULK_MARK.search(step.reason)
    if not written:
        return format_html("{}", step.reason)
    return format_html("{} [bulk {}]", step.reason[: written.start()], id_link(context, "bulk", machine, written[1]))


@register.filter
def pairs(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List names and values. ``values.items`` in a template is the value of a name ``items``, where there is one."""
    return list(values.items())


@register.filter
def figure(number: Any) -> str:
    """Format a number as 12,345: the same grouping in every language, so that columns line up."""
    return f"{number:,}" if isinstance(number, int) else str(number)


@register.filter
def place(name: str) -> str:
    """Return what pages call a place of jobs."""
    return "moved on" if name == "handled" else name


@register.filter
def size(bytes: int) -> str:
    """Format an amount of memory: ``12 kB``, ``84 MB``, ``1.2 GB``; a dash if it is unknown."""
    if bytes <= 0:
        return "–"
    if bytes < 999_500:
        return f"{max(1, round(bytes / 1e3)):,} kB"
    return f"{bytes / 1e6:,.0f} MB" if bytes < 999_500_000 else f"{bytes / 1e9:,.1f} GB"


@register.filter
def value(anything: Any) -> str:
    """Return a data value as its JSON text: a string keeps its quotes, so that "" and "3" cannot be mistaken.

    A masked value is no string.
    """
    return MASK if anything == MASK else json.dumps(anything, ensure_ascii=False, default=str)


@register.filter
def is_masked(anything: Any) -> bool:
    """Return whether a value is redacted."""
    return bool(anything == MASK)


@register.filter
def pretty(anything: Any) -> str:
    """Return a data value as JSON text over several lines."""
    return json.dumps(anything, ensure_ascii=False, indent=2, default=str)


@register.filter
def span(ms: float | None) -> str:
    """Format a duration."""
    return "–" if ms is None else format_duration(ms)


@register.filter
def moment(at: Time) -> SafeString:
    """Return ``<time>21 Nov 2026, 03:22:03 UTC+1</time>``: in the person's zone, with UTC in its title."""
    return times.format_element(_in_ms(at))


@register.simple_tag
def columns(*heads: str) -> SafeString:
    """Write the head of a table. ``Attempt:num wide``: behind a colon stand the classes of a column; one that is
    ``unseen`` is for screen readers alone. ``Wait|last hour``: a note in small print. An empty head is no column."""
    cells = SafeString("")
    for label, _, classes in (head.partition(":") for head in heads if head):
        label, _, note = label.partition("|")
        name = format_html(' class="{}"', classes) if classes else ""
        text = format_html("<span{}>{}</span>", name, label) if classes == "unseen" else label
        small = format_html(" <small>{}</small>", note) if note else ""
        cells += format_html('<th scope="col"{}>{}{}</th>', "" if classes == "unseen" else name, text, small)
    return format_html("<thead><tr>{}</tr></thead>", cells)


@register.simple_block_tag
def table(content: SafeString, *heads: str, **attributes: Any) -> SafeString:
    """Write a table that scrolls by itself around its rows. ``heads``: as ``columns`` takes them."""
    return format_html(
        '<div class="scroll"><table{}>{}<tbody>{}</tbody></table></div>', _flatten(attributes), columns(*heads), content
    )


@register.simple_block_tag
def fact(content: SafeString, name: str, **attributes: Any) -> SafeString:
    """Write a row with a name and its value."""
    attributes = {"class": "grow"} | attributes
    return format_html('<tr><th scope="row">{}</th><td{}>{}</td></tr>', name, _flatten(attributes), content)


@register.simple_block_tag(takes_context=True)
def panel(
    context: Context, content: SafeString, label: str, title: str = "", *, aside: str | None = None, **attributes: Any
) -> SafeString:
    """Write a panel with its heading. ``label``: the id of the heading; ``aside``: what stands beside it. Where these
    have markup, the tags ``heading`` and ``aside`` inside of the panel bring them."""
    attributes = {"class": f"panel {attributes.pop('class', '')}".rstrip(), "aria-labelledby": label} | attributes
    parts = context.render_context.dicts[-1]
    title, aside = parts.pop("heading", title), parts.pop("aside", aside)
    beside = "" if aside is None else format_html('<span class="aside">{}</span>', aside)
    return format_html(
        '<section{}><header><h2 id="{}">{}</h2>{}</header>{}</section>',
        _flatten(attributes), label, title, beside, content,
    )  # fmt: skip


@register.simple_block_tag(takes_context=True)
def heading(context: Context, content: SafeString) -> str:
    """Give the panel around it its heading."""
    context.render_context["heading"] = content
    return ""


@register.simple_block_tag(takes_context=True)
def aside(context: Context, content: SafeString) -> str:
    """Give the panel around it what stands beside its heading."""
    context.render_context["aside"] = content
    return ""


@register.simple_block_tag
def notice(content: SafeString, kind: str, *, sign: str = "", **attributes: Any) -> SafeString:
    """Write a notice. ``kind``: its colour, a key of ``SIGNS`` or empty; ``sign``: another than the usual one."""
    attributes = {"class": f"notice {kind}".rstrip()} | attributes
    return format_html(
        '<div{}><span class="sign" aria-hidden="true">{}</span><p class="said">{}</p></div>',
        _flatten(attributes), sign or SIGNS[kind], content,
    )  # fmt: skip


def _flatten(attributes: Mapping[str, Any]) -> str:
    """Return attributes as HTML has them: ``data_region`` is ``data-region``, and an empty one is left out."""
    return flatatt({name.replace("_", "-"): value or None for name, value in attributes.items()})


@register.simple_tag
def live_url(request: HttpRequest | None) -> str:
    """Return the address of the websocket; empty if the server that answers takes none, and the page polls."""
    return live_path() if is_served_to(request) else ""


@register.simple_tag
def logout_url() -> str:
    """Return where the button to log out leads: what the project names, or the view that ends the session."""
    return resolve_url(conf.LOGOUT_URL or "signalbox:logout")


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return ``light`` or ``dark``; empty if the system's theme holds. An outage page has no request, but the theme."""
    return str(context.get("theme") or theme_of(context.get("request")))


@register.simple_tag
def event_words(step: Step, words: HistoryWords | str | None = None, plain: bool = False) -> str:
    """Return the event of a step in the words of the diagram; its name in the title. ``plain``: the words alone."""
    known = not isinstance(words, str) and words is not None
    said = words.describe(step) if known else EventWords().describe(step.event, step.payload)
    if plain:
        return said
    if said == step.event:
        return format_html('<span class="event">{}</span>', said)
    return format_html('<span class="event said" title="{}">{}</span>', step.event, said)


@register.filter
def list_left(step: Step) -> list[str]:
    """List the leaf states that a step left; nothing happened in the other regions."""
    return [name for name in step.source or () if name not in step.configuration]


@register.filter
def list_entered(step: Step) -> list[str]:
    """List the leaf states that a step led to; all of them if it left none."""
    return [name for name in step.configuration if name not in (step.source or ())] or step.configuration


@register.simple_tag
def querystring_of(**terms: Any) -> str:
    """Build a query string with its values quoted: ``?state=Waiting``."""
    return f"?{urlencode(terms)}"


@register.simple_tag
def address(of: InstanceList | Replay, **terms: Any) -> str:
    """Return the address of the same list, or of the same instance, with other terms; None leaves one out."""
    return of.url(**terms)


@register.filter
def as_json(value: Any) -> str:
    """Write a value for a script of the page."""
    return json.dumps(value, ensure_ascii=False)


@register.filter
def of_version(listing: InstanceList, version: int | None) -> str:
    """Return the address of the same list and diagram for one version, in all its states; None: for all versions."""
    return listing.url(version=version, state=None, cursor=None, fold=None, view=None)


@register.filter
def of_state_elsewhere(listing: InstanceList, found: Elsewhere) -> str:
    """Return the address of the instances in a state that the diagram does not have, on the diagram of their
    version."""
    version = found.versions[0] if len(found.versions) == 1 else None
    return listing.url(version=version, state=found.state, cursor=None, fold=None, view=None)


@register.simple_tag(takes_context=True)
def instance_rows(context: Context, table: InstanceTable, picks: bool) -> SafeString:
    """Build the rows of a list of instances, in a table. ``picks``: with a box to select each."""
    now = context.get("now_ms") or time.time() * 1000
    return write_rows(
        table.page.instances, table.listing.columns, table.wrong, now=now, picks=picks, current_app=_find_app(context)
    )
