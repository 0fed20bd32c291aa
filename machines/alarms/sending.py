"""Sends alarms to the receivers of routes: each episode once, its end once, and a flood as one message with a count.

A duty of workers. What a route was sent stands in ``AlarmNotice``, written in one transaction with the delivery, which
any worker then sends: a worker that dies loses no message and makes none twice.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from machines.conf import mark_environment
from machines.conf.database import prepare_check
from machines.webhooks import sender
from machines.webhooks.fan_out import new_key
from machines.webhooks.message_body import write_body
from machines.webhooks.models import Delivery

from .alarm import CRITICAL, KINDS, SEVERITIES, pluralize, rank_severity
from .models import AlarmNotice, AlarmRoute, AlarmState

TYPE = "signalbox.alarm"
QUIET = timedelta(seconds=60)  # between two messages of a route: what begins and ends meanwhile is in the next one
MOST = 20  # alarms that a message names; it counts the others
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SPAN = re.compile(r"(?:(%s)(?:-(%s))? )?([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})" % (("|".join(DAYS),) * 2))
WHOLE_DAY = 24 * 60

Span = tuple[frozenset[int], int, int]
"""Days of the week from 0, and two minutes of the day. A span whose end comes first goes on to the next day."""


def parse_hours(text: str) -> list[Span]:
    """Read ``mon-fri 08:00-18:00, sat 22:00-06:00``. Raises ValueError with what is wrong."""
    found = []
    for part in filter(None, (part.strip().lower() for part in text.split(","))):
        if (match := SPAN.fullmatch(part)) is None:
            raise ValueError(f"{part!r} is no time; write mon-fri 08:00-18:00, sat 09:00-12:00")
        first, last, *clock = match.groups()
        begin, end = (int(hour) * 60 + int(minute) for hour, minute in (clock[:2], clock[2:]))
        if begin >= WHOLE_DAY or end > WHOLE_DAY or begin == end or int(clock[1]) > 59 or int(clock[3]) > 59:
            raise ValueError(f"{part!r} is no time of a day; it has 00:00 to 24:00, and ends at another minute")
        low = DAYS.index(first) if first else 0
        high = DAYS.index(last or first) if first else 6
        found.append((frozenset((low + day) % 7 for day in range((high - low) % 7 + 1)), begin, end))
    return found


def is_open(route: AlarmRoute, now: datetime) -> bool:
    """Tell whether a route sends at this time."""
    local = now.astimezone(ZoneInfo(route.zone))
    today, minute = local.weekday(), local.hour * 60 + local.minute
    spans = parse_hours(route.hours)
    for days, begin, end in spans:
        if begin < end and today in days and begin <= minute < end:
            return True
        if begin > end and ((today in days and minute >= begin) or ((today - 1) % 7 in days and minute < end)):
            return True
    return not spans


def fits(route: AlarmRoute, row: AlarmState, now: datetime) -> bool:
    """Tell whether a route is to be sent an alarm that stands; none of a kind that only another release knows."""
    if row.kind not in KINDS:
        return False
    if rank_severity(row.severity) > rank_severity(route.severity) or (route.kinds and row.kind not in route.kinds):
        return False
    if route.machines and row.machine not in route.machines:
        return False
    if row.snoozed_until is not None and row.snoozed_until > now:
        return False
    return not route.after or (not row.owner and now - row.first_seen >= timedelta(minutes=route.after))


_OPEN = AlarmRoute.objects.filter(receiver__active=True)
_has_open = prepare_check(_OPEN)


def send_alarms(now: datetime | None = None) -> int:
    """Make the messages that are due; return how many. Raises errors of the database."""
    now = now or timezone.now()
    if not _has_open():
        return 0
    routes = _OPEN.select_related("receiver").prefetch_related("notices")
    standing = list(AlarmState.objects.filter(cleared_at__isnull=True))
    made = sum(_make_message(route, standing, now) for route in routes)
    if made:
        sender.call()
    return made


def _make_message(route: AlarmRoute, standing: Sequence[AlarmState], now: datetime) -> bool:
    if not is_open(route, now) or (route.sent_at is not None and now - route.sent_at < QUIET):
        return False
    notices = {(notice.key, notice.episode): notice for notice in route.notices.all()}
    names = {(row.key, row.episode) for row in standing}
    begun = [row for row in standing if (row.key, row.episode) not in notices and fits(route, row, now)]
    ended = [notice for name, notice in notices.items() if name not in names]
    if not begun and not ended:
        return False
    with transaction.atomic():
        turn = AlarmRoute.objects.filter(pk=route.pk, passes=route.passes)
        if not turn.update(passes=F("passes") + 1, sent_at=now):
            return False  # another worker has just made it
        AlarmNotice.objects.filter(pk__in=[notice.pk for notice in ended]).delete()
        AlarmNotice.objects.bulk_create(
            AlarmNotice(route=route, key=row.key, episode=row.episode, kind=row.kind, machine=row.machine)
            for row in begun
        )
        body = write_body(TYPE, int(now.timestamp() * 1000), _describe(route, begun, ended))
        deliver(route, f"alarm:{route.pk}:{route.passes}", TYPE, body)
    return True


def deliver(route: AlarmRoute, message: str, type: str, body: str) -> Delivery:
    """Make the delivery of a message. ``message``: names it among all of this route."""
    return Delivery.objects.create(webhook=route.receiver, message=message, key=new_key(), type=type, body=body)


def _describe(route: AlarmRoute, begun: Sequence[AlarmState], ended: Sequence[AlarmNotice]) -> dict[str, Any]:
    """Return the data of a message: names of machines and kinds, counts and a link, and nothing of an instance."""
    begun = sorted(begun, key=lambda row: (rank_severity(row.severity), row.first_seen, row.key))
    worst = begun[0].severity if begun else ""
    lines = [
        f"{row.severity}: {_name(row)}{f', {row.count:,}' if row.count else ''}. {KINDS[row.kind].advice}"
        for row in begun[:MOST]
    ]
    if (more := len(begun) - MOST) > 0:
        lines.append(f"and {more:,} more: {_count(begun[MOST:])}")
    lines += [f"over: {_name(notice)}" for notice in ended[:MOST]]
    if (more := len(ended) - MOST) > 0:
        lines.append(f"and {more:,} more are over")
    return {
        "title": mark_environment(_write_title(begun, ended)), "text": "\n".join([*lines, *filter(None, [route.link])]),
        "severity": {CRITICAL: "failure", "": "success"}.get(worst, worst), "link": route.link,
        "begun": len(begun), "over": len(ended),
        "alarms": [
            {
                "episode": row.episode, "kind": row.kind, "machine": row.machine, "severity": row.severity,
                "count": row.count, "since": int(row.first_seen.timestamp() * 1000),
            }
            for row in begun[:MOST]
        ],
        "ended": [{"episode": one.episode, "kind": one.kind, "machine": one.machine} for one in ended[:MOST]],
    }  # fmt: skip


def _write_title(begun: Sequence[AlarmState], ended: Sequence[AlarmNotice]) -> str:
    if len(begun) == 1:
        what = f"{begun[0].severity} alarm: {_name(begun[0])}"
    elif begun:
        what = f"{pluralize(len(begun), 'alarm')}: {_count(begun)}"
    else:
        return f"Over: {_name(ended[0])}" if len(ended) == 1 else f"{pluralize(len(ended), 'alarm')} over"
    return f"{what}; {len(ended):,} over" if ended else what[0].upper() + what[1:]


def _name(row: AlarmState | AlarmNotice) -> str:
    return f"{row.kind} of {row.machine}" if row.machine else row.kind


def _count(rows: Iterable[AlarmState]) -> str:
    found = [row.severity for row in rows]
    return ", ".join(f"{found.count(name):,} {name}" for name in SEVERITIES if name in found)
