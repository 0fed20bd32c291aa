"""Alarms: those that stand and those that are snoozed, their history, the actions on them, and their routes, whose
addresses are never shown again. ``machines.alarms.actions`` and ``machines.alarms.routes`` do the work."""

from datetime import timedelta
from typing import Any, Literal, Self

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.form_views import Mistake, answer_form
from dashboard.shared.list_pages import ListLinks, Terms, cut_page
from dashboard.shared.permissions import View, require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.webhooks.forms import ReceiverForm
from dashboard.webhooks.receivers import ReceiverPages
from machines.alarms import actions as alarms
from machines.alarms import routes
from machines.alarms.alarm import KINDS, SEVERITIES, Alarm
from machines.alarms.errors import BadAlarmInput, UnknownAlarm
from machines.alarms.models import KEY_LENGTH
from machines.engine.limits import MAX_NAME
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.models import AlarmEvent, AlarmRoute
from machines.people.actor import Actor
from machines.people.errors import TooFast
from machines.people.permissions import scope_of
from machines.webhooks import apprise_post, management

from .queries import collect_alarms

DURATIONS = [
    ("30", "30 minutes"),
    ("60", "1 hour"),
    ("240", "4 hours"),
    ("480", "8 hours"),
    ("1440", "1 day"),
    ("4320", "3 days"),
    ("10080", "7 days"),
]
"""Minutes, and their label."""


class KeyForm(PageForm):
    key = forms.CharField(max_length=KEY_LENGTH)

    def arguments(self) -> dict[str, Any]:
        return self.cleaned_data


class OwnerForm(KeyForm):
    """``owner``: blank gives the alarm up."""

    owner = forms.CharField(required=False, max_length=150)


class SnoozeForm(KeyForm):
    minutes = forms.ChoiceField(label="for", choices=DURATIONS)
    reason = forms.CharField(max_length=REASON_LIMIT)

    def arguments(self) -> dict[str, Any]:
        minutes = int(self.cleaned_data.pop("minutes"))
        return self.cleaned_data | {"duration": timedelta(minutes=minutes)}


FORMS = {
    "acknowledge": (KeyForm, "Acknowledged"),
    "assign": (OwnerForm, "Owner saved"),
    "snooze": (SnoozeForm, "Snoozed"),
    "wake": (KeyForm, "Snooze ended"),
}
"""Action -> its form, and what is said of it."""


class RouteForm(ReceiverForm):
    """``written``: of a route that has an address, which stays where the field is blank."""

    noun, lists = "route", ("machines", "kinds")

    name = forms.CharField(label="name", max_length=management.LONGEST_NAME)
    url = forms.CharField(
        label="address",
        max_length=2000,
        widget=forms.TextInput({"placeholder": "slack://… or https://…", "autocomplete": "off"}),
        help_text="of apprise (slack://, msteams://, pagerduty://, mailto://, …), or https:// for a signed webhook",
    )
    severity = forms.ChoiceField(
        label="severity",
        choices=[("critical", "critical"), ("warning", "warning and critical"), ("info", "all")],
        initial="warning",
    )
    machines = forms.CharField(
        label="machines", required=False, help_text="comma-separated names; blank: all machines and the installation"
    )
    kinds = forms.CharField(
        label="kinds", required=False, help_text=f"comma-separated; blank: all of {', '.join(KINDS)}"
    )
    hours = forms.CharField(
        label="hours", required=False, help_text="mon-fri 08:00-18:00, sat 09:00-12:00; blank: always"
    )
    zone = forms.CharField(label="time zone", initial="UTC", help_text="of the hours, such as Europe/Paris")
    after = forms.IntegerField(
        label="minutes without an owner",
        initial=0,
        min_value=0,
        max_value=routes.LONGEST_AFTER,
        help_text="0: at once; more: only alarms that nobody has taken by then",
    )
    link = forms.CharField(
        label="link", required=False, max_length=2000, help_text="to the page Alarms, as its readers reach it"
    )

    def __init__(self, *args: Any, written: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        if written:
            self.fields["url"].required = False
            self.fields["url"].help_text = "blank: the address stays as it is; it is not shown again"

    @classmethod
    def blank(cls, request: HttpRequest) -> Self:
        return cls(initial={"link": request.build_absolute_uri(reverse("signalbox:alarms"))})


class AlarmTerms(Terms):
    severity: Literal["", "critical", "warning", "info"] = ""
    machine: str = Field("", max_length=MAX_NAME)

    def fits(self, alarm: Alarm) -> bool:
        return self.severity in ("", alarm.severity) and (not self.machine or self.machine in alarm.affected)


ALL = AlarmTerms()


class HistoryFilter(PageForm):
    """Filters the history. ``before``: the id of an event, for the next page."""

    event = forms.ChoiceField(label="event", required=False, choices=[("", "all"), *AlarmEvent.Event.choices])
    kind = forms.ChoiceField(label="kind", required=False, choices=[("", "all"), *((name, name) for name in KINDS)])
    machine = forms.CharField(label="machine", required=False, max_length=MAX_NAME)
    key = forms.CharField(required=False, max_length=KEY_LENGTH, widget=forms.HiddenInput)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)


SIZE = 50  # events on a page


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    """List the alarms that stand, and those that are snoozed."""
    return _render_page(request, AlarmTerms.of_page(request))


def _render_page(
    request: HttpRequest, terms: AlarmTerms = ALL, *, mistake: str = "", status: int = 200
) -> HttpResponse:
    """Render the list. ``mistake``: what is wrong with the form that was sent for an alarm."""
    operated, panels = scope_of(request.user, "operate"), Panels()
    found = collect_alarms(scope_of(request.user), operated, redacted_engine(request).survey(), panels)
    shown = [alarm for alarm in found if terms.fits(alarm)]
    counts = {name: sum(alarm.severity == name for alarm in found) for name in SEVERITIES}
    links = ListLinks("alarms", **terms.model_dump())
    context = {
        "alarms": shown,
        "away": panels.away,
        "snoozed": [alarm for alarm in found.snoozed if terms.fits(alarm)],
        "all": len(found),
        "tabs": links.tabs("severity", [("", "all"), *((name, f"{name} {counts[name]:,}") for name in SEVERITIES)]),
        "machine": terms.machine,
        "severity": terms.severity,
        "durations": DURATIONS,
        "managed": True,
        "routed": routes.has_routes(),
        "routes_open": operated.all,
        "mistake": mistake,
        "mistaken": request.POST.get("key", ""),
        "minutes": request.POST.get("minutes", "60"),
        "reason": request.POST.get("reason", ""),
        "owner": request.POST.get("owner", ""),
    }
    return render_page(request, "signalbox/alarms/alarms.html", context, status=status)


@require("view")
def show_history(request: HttpRequest) -> HttpResponse:
    """List what became of alarms, newest first."""
    terms = HistoryFilter(request.GET)
    if not terms.is_valid():
        raise Http404("Unknown filter.")
    given = terms.cleaned_data
    named = {name: given[name] for name in ("machine", "kind", "event", "key")}
    rows, further = cut_page(alarms.history(Actor.of(request), **named), given["before"], SIZE)
    context = {
        "rows": rows,
        "terms": terms,
        "narrowed": any(named.values()),
    } | ListLinks("alarm-history", **named).pages("before", given["before"], further)
    return render_page(request, "signalbox/alarms/history.html", context)


def _make_view(name: str) -> View:
    """Make the view of one action. It returns to the page that its form stands on."""
    make, message = FORMS[name]

    @answer_form(
        "alarms", "operate", f"alarm.{name}", refused=(UnknownAlarm, TooFast), shown=(BadAlarmInput,),
        render=_render_page,
    )  # fmt: skip
    def view(request: HttpRequest) -> str:
        form = make(request.POST)
        if not form.is_valid():
            raise Mistake("; ".join(f"{name}: {text}" for name, texts in form.errors.items() for text in texts))
        alarm: Alarm = getattr(alarms, name)(Actor.of(request), **form.arguments())
        return f"{message}: {alarm.text}"

    return view


ACTION_VIEWS = {name: _make_view(name) for name in FORMS}


def _list_routes(actor: Actor) -> dict[str, Any]:
    return {"routes": [(route, routes.show_address(route.receiver.url)) for route in routes.list_routes(actor)]}


def _describe_route(route: AlarmRoute) -> dict[str, Any]:
    url = route.receiver.url
    return {"address": routes.show_address(url), "posts": not apprise_post.is_apprise(url)}


ROUTE_PAGES = ReceiverPages(
    "route", "alarm-route", "alarms", routes, RouteForm, _list_routes, _describe_route,
    said={
        "pause": "Paused: no alarms are sent",
        "resume": "Resumed",
        "test": "Test message queued: the log below has its result",
    },
)  # fmt: skip
