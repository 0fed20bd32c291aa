"""Routes of alarms: who is sent which alarms, when, and by what. The service that pages and settings call.

It takes ``operate`` on every machine, as webhooks do. The address of a route is a secret: once it is written, pages
show its scheme and, of one that is posted to, its host. Each change is in the audit, refused ones too.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.core.checks import CheckMessage, Error, register
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from machines.audit.entries import AuditRecord
from machines.audit.models import describe_address
from machines.conf import conf, mark_environment, table
from machines.conf.database import prepare_check
from machines.conf.project import TAG, WORKER_TAG
from machines.people.actor import Actor
from machines.webhooks import apprise_post, management
from machines.webhooks.addresses import check_address
from machines.webhooks.errors import BadWebhook
from machines.webhooks.message_body import write_body
from machines.webhooks.models import Delivery, Webhook
from machines.webhooks.signing import is_secret, new_secret

from .alarm import KINDS, SEVERITIES
from .errors import BadRoute, UnknownRoute
from .models import AlarmRoute
from .sending import deliver, parse_hours

log = logging.getLogger(__name__)

RIGHT = management.RIGHT
MOST = 100  # routes
LONGEST_AFTER = 7 * 24 * 60  # minutes
LONGEST_HOURS = 200  # characters
AGAIN = 600.0  # seconds until a refused route of the settings is checked again: a service may have been slow
WITHOUT = "an address that is posted to needs a secret, as a webhook's: whsec_ and 32 random bytes in base64"
DEFAULTS: dict[str, Any] = {
    "severity": "warning", "machines": [], "kinds": [], "hours": "", "zone": "UTC", "after": 0, "link": "",
}  # fmt: skip
SETTINGS = Actor("settings", "settings")
"""Who changes the routes of ``ALARM_ROUTES``."""


def has_routes() -> bool:
    """Tell whether any address or receiver is sent alarms."""
    return AlarmRoute.objects.filter(receiver__active=True).exists()


def list_routes(actor: Actor) -> QuerySet[AlarmRoute]:
    """List all routes. Raises Forbidden."""
    actor.demand(RIGHT)
    return AlarmRoute.objects.select_related("receiver")


def get(actor: Actor, id: int) -> AlarmRoute:
    """Return a route. Raises Forbidden, UnknownRoute."""
    route = list_routes(actor).filter(pk=id).first()
    if route is None:
        raise UnknownRoute(f"route {id} not found")
    return route


def show_address(url: str) -> str:
    """Return what may be shown of an address."""
    return f"{apprise_post.get_scheme(url)}://•••" if apprise_post.is_apprise(url) else describe_address(url)["url"]


def make(actor: Actor, *, name: str, url: str, **fields: Any) -> tuple[AlarmRoute, str]:
    """Make a route; return it and the secret that its messages are signed with, "" for one of apprise. Raises
    Forbidden, BadRoute."""
    with actor.records("route.make", target=str(name)) as entry:
        actor.demand(RIGHT)
        route = _make(name, url, fields, maker=actor.name)
        entry.note(**_list_facts(route))
        return route, "" if apprise_post.is_apprise(url) else route.receiver.secret


def change(actor: Actor, id: int, **fields: Any) -> AlarmRoute:
    """Change a route: ``name``, ``url``, and those of DEFAULTS; what is left out stays."""
    return _update(actor, id, fields)


def pause(actor: Actor, id: int) -> AlarmRoute:
    """Pause a route: nothing is sent to it."""
    return _switch(actor, id, False)


def resume(actor: Actor, id: int) -> AlarmRoute:
    """Have a route send again: what stands and was not sent yet."""
    return _switch(actor, id, True)


def rotate(actor: Actor, id: int) -> tuple[AlarmRoute, str]:
    """Give a route that posts a new secret; the former one is valid for a day beside it."""
    with _change(actor, "route.rotate", id) as (route, _):
        return route, management.renew_secret(route.receiver)


def delete(actor: Actor, id: int) -> None:
    """Delete a route with the log of its deliveries."""
    with _change(actor, "route.delete", id) as (route, entry):
        entry.note(**_list_facts(route))
        route.receiver.delete()


def test(actor: Actor, id: int) -> Delivery:
    """Send a message that says it is a test, at any hour."""
    with actor.records("route.test", target=str(id)) as entry:
        route = get(actor, id)
        entry.name(target=route.receiver.name)
        if not route.receiver.active:
            raise BadRoute("active", "the route is paused: resume it first")
        now = timezone.now()
        text = f"{actor.name} tests the route {route.receiver.name}. Nothing is wrong.\n{route.link}".strip()
        data = {"title": mark_environment("Test of Signalbox"), "text": text, "severity": "info", "link": route.link}
        body = write_body(management.TEST, int(now.timestamp() * 1000), data)
        Webhook.objects.filter(pk=route.receiver.pk).update(rest_until=None)
        return deliver(route, f"test:{now.timestamp()}", management.TEST, body)


def redeliver(actor: Actor, id: int, delivery: int) -> Delivery:
    """Send a message once more."""
    with actor.records("route.redeliver", target=str(id)) as entry:
        route = get(actor, id)
        entry.name(target=route.receiver.name)
        entry.note(delivery=delivery)
        return management.resend(route.receiver, delivery)


def _switch(actor: Actor, id: int, active: bool) -> AlarmRoute:
    with _change(actor, "route.change", id) as (route, entry):
        entry.note(active=active)
        Webhook.objects.filter(pk=route.receiver.pk).update(active=active, stopped="", failures=0, rest_until=None)
        return get(actor, id)


@contextmanager
def _open(actor: Actor, action: str, id: int) -> Iterator[AuditRecord]:
    with actor.records(action, target=str(id)) as entry:
        route = get(actor, id)
        entry.name(target=route.receiver.name)
        if route.declared and actor is not SETTINGS:
            raise BadRoute("name", "this route stands in the settings; change it there")
        yield entry


@contextmanager
def _change(actor: Actor, action: str, id: int) -> Iterator[tuple[AlarmRoute, AuditRecord]]:
    with _open(actor, action, id) as entry, transaction.atomic():
        yield get(actor, id), entry


def _update(actor: Actor, id: int, fields: Mapping[str, Any], secret: str = "") -> AlarmRoute:
    with _open(actor, "route.change", id) as entry:
        checked = _check(fields)  # before the transaction: apprise may take its time for an address
        with transaction.atomic():
            route = get(actor, id)
            route.receiver.secret = secret or route.receiver.secret
            _assign(route, checked)
        entry.note(**_list_facts(route))
        return route


def _make(name: str, url: str, fields: Mapping[str, Any], *, maker: str, secret: str = "", **more: Any) -> AlarmRoute:
    if why := _find_full():
        raise BadRoute("name", why)
    receiver = Webhook(types=[], secret=secret or new_secret(), for_alarms=True, maker=maker)
    route = AlarmRoute(receiver=receiver, **more)
    _assign(route, _check({"name": name, "url": url, **DEFAULTS, **fields}))
    return route


def _find_full() -> str:
    return f"{MOST} routes is the maximum" if AlarmRoute.objects.count() >= MOST else ""


def _check(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they are stored. Raises BadRoute for the first that does not fit."""
    if unknown := set(fields) - {"name", "url", *DEFAULTS}:
        raise BadRoute(min(unknown), f"a route has name, url, {', '.join(DEFAULTS)}, and no {min(unknown)}")
    return {name: CHECKS[name](value) for name, value in fields.items()}


def _assign(route: AlarmRoute, checked: Mapping[str, Any]) -> None:
    """Save checked fields, and nothing that workers write. Raises BadRoute for a name that is taken."""
    receiver = route.receiver
    for name, value in checked.items():
        setattr(receiver if name in ("name", "url") else route, name, value)
    receiver.failures, receiver.rest_until = 0, None
    try:
        with transaction.atomic():
            receiver.save(update_fields=["name", "url", "secret", "failures", "rest_until"] if receiver.pk else None)
            route.receiver = receiver
            route.save(update_fields=checked.keys() - {"name", "url"} if route.pk else None)
    except IntegrityError:
        raise BadRoute("name", _explain_taken(receiver.name)) from None


def _explain_taken(name: str) -> str:
    return f"a route or webhook named {name!r} already exists"


def _list_facts(route: AlarmRoute) -> dict[str, Any]:
    """Return what the audit says of a route."""
    url = route.receiver.url
    return {name: getattr(route, name) for name in DEFAULTS} | describe_address(url) | {"url": show_address(url)}


# What fits


def _check_url(url: Any) -> str:
    """Check an address: one that is posted to as a webhook's, any other by apprise."""
    if isinstance(url, str) and apprise_post.is_apprise(url):
        if why := apprise_post.check(url):
            raise BadRoute("url", why)
        return url
    try:
        return str(check_address(url))
    except BadWebhook as error:
        raise BadRoute("url", f"{error.message}; or name a service, as slack://…") from None


def _check_severity(severity: Any) -> str:
    if severity not in SEVERITIES:
        raise BadRoute("severity", f"{severity!r:.40} is not one of {', '.join(SEVERITIES)}")
    return str(severity)


def _check_kinds(given: Any) -> list[str]:
    for kind in (found := management.check_texts("kinds", given, BadRoute)):
        if kind not in KINDS:
            raise BadRoute("kinds", f"there is no kind {kind!r:.40}; there are {', '.join(KINDS)}")
    return found


def _check_hours(text: Any) -> str:
    try:
        parse_hours(str(text))
    except ValueError as error:
        raise BadRoute("hours", str(error)) from None
    if len(str(text)) > LONGEST_HOURS:
        raise BadRoute("hours", f"at most {LONGEST_HOURS} characters")
    return str(text).strip()


def _check_zone(name: Any) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise BadRoute("zone", f"there is no time zone {name!r:.60}; write UTC or Europe/Paris") from None
    return str(name)


def _check_after(minutes: Any) -> int:
    if not isinstance(minutes, int) or isinstance(minutes, bool) or not 0 <= minutes <= LONGEST_AFTER:
        raise BadRoute("after", f"0 to {LONGEST_AFTER} minutes")
    return minutes


def _check_link(link: Any) -> str:
    if not isinstance(link, str) or not re.fullmatch(r"(https?://[^\x00-\x20\x7f]{1,1990})?", link):
        raise BadRoute("link", "a link begins with https:// or http://, and has no spaces")
    return link


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "name": partial(management.check_name, refusal=BadRoute), "url": _check_url, "severity": _check_severity,
    "machines": partial(management.check_machines, refusal=BadRoute), "kinds": _check_kinds, "hours": _check_hours,
    "zone": _check_zone, "after": _check_after, "link": _check_link,
}  # fmt: skip


# Routes of the settings


def find_problems() -> list[str]:
    """Return a sentence for each route of ``ALARM_ROUTES`` that does not fit."""
    return [why for given in conf.ALARM_ROUTES if (why := _find_problem(given))]


@register(TAG, WORKER_TAG)
def check_routes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check for E060: a route of ``ALARM_ROUTES`` whose address, hours, filter or secret does not fit."""
    if table.find_problems():
        return []  # E016 says what is wrong
    hint = "docs/alarms.md has what a route says."
    return [Error(why, hint=hint, id="signalbox.E060") for why in find_problems()]


def _find_problem(given: Mapping[str, Any]) -> str:
    label = f"route {given['name']!r} of ALARM_ROUTES"
    try:
        for name, value in given.items():
            if name != "secret":
                CHECKS[name](value)
    except BadRoute as error:
        return f"{label}: {error.field}: {error.message}"
    return "" if apprise_post.is_apprise(given["url"]) or is_secret(given.get("secret")) else f"{label}: {WITHOUT}"


_has_declared = prepare_check(AlarmRoute.objects.filter(declared=True))


def declare() -> None:
    """Make, change and remove the routes that the settings declare. Those that do not fit are logged, and left out:
    the system check E060 names them before a worker starts."""
    if not conf.ALARM_ROUTES and not _has_declared():
        return
    held = {route.receiver.name: route for route in AlarmRoute.objects.filter(declared=True).select_related("receiver")}
    named = [{**DEFAULTS, **given, "name": given["name"].strip()} for given in conf.ALARM_ROUTES]
    wanted = {given["name"]: given for given in named}
    for name in held.keys() - wanted.keys():
        delete(SETTINGS, held[name].pk)
    for name, given in wanted.items():
        secret, url = given.pop("secret", ""), given["url"]
        route = held.get(name)
        if route is not None and _has(route, given, secret):
            continue
        whole = {**given, "secret": secret}
        if (refusal := _refused.get(name)) and refusal.given == whole and time.monotonic() < refusal.until:
            continue
        if route is None and (why := _find_taken(name) or _find_full()):  # first: it starts no process
            _refuse(whole, f"route {name!r} of ALARM_ROUTES: {why}")
        elif why := _find_problem(whole):
            _refuse(whole, why, for_seconds=AGAIN)
        elif route is None:
            with SETTINGS.records("route.make", target=name) as entry:
                fields = {field: given[field] for field in DEFAULTS}
                made = _make(name, url, fields, maker=SETTINGS.name, secret=secret, declared=True)
                entry.note(**_list_facts(made))
        else:
            _update(SETTINGS, route.pk, given, secret)


def _find_taken(name: str) -> str:
    return _explain_taken(name) if Webhook.objects.filter(name=name).exists() else ""


def _has(route: AlarmRoute, given: Mapping[str, Any], secret: str) -> bool:
    """Tell whether a route is as the settings have it. An address of apprise is stored as it is written, and checking
    it starts a process."""
    held = {name: getattr(route, name) for name in DEFAULTS} | {"name": route.receiver.name, "url": route.receiver.url}
    url = given["url"]
    try:
        wanted = _check(
            {name: value for name, value in given.items() if name != "url" or not apprise_post.is_apprise(url)}
        )
    except BadRoute:
        return False
    return held == {"url": url, **wanted} and secret in ("", route.receiver.secret)


class _Refusal(NamedTuple):
    """A route of the settings that was left out. It is checked again once the settings have another one, or at
    ``until``: checking an address of apprise starts a process, and the duty runs every few seconds."""

    given: dict[str, Any]
    why: str
    until: float


_refused: dict[str, _Refusal] = {}


def _refuse(given: dict[str, Any], why: str, *, for_seconds: float = 0.0) -> None:
    """Remember a refusal, and log what was not said of these settings yet."""
    said = _refused.get(given["name"])
    if said is None or (said.given, said.why) != (given, why):
        log.error("%s", why)
    _refused[given["name"]] = _Refusal(given, why, time.monotonic() + for_seconds)
