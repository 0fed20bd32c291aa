"""Sends due deliveries, each by one worker at a time, and records the result of an attempt."""

import asyncio
import logging
import random
import secrets
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import F, Q
from django.utils import timezone

from machines.conf import conf
from machines.conf.database import DatabaseDuty, prepare_check
from machines.connections import get_pattern
from machines.engine import EngineUnavailable, rates
from machines.patterns import Throttle
from machines.patterns.base import MAX_KEY

from .apprise_post import get_scheme, is_apprise
from .http_post import PostResult, post
from .models import Delivery, Webhook

log = logging.getLogger(__name__)

# Seconds before each further attempt, about a day in all; then it is given up.
SCHEDULE = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 28_800)
JITTER = 0.2  # of a pause, up or down: what failed together need not come back together
LEASE = timedelta(seconds=60)  # an attempt takes a quarter of it at most, one by apprise half; then its worker is dead
BATCH = 16  # deliveries a pass sends side by side
EACH = 4  # of them for one webhook; a single one for one that has just failed
LONGEST_REST = 300  # seconds a webhook that fails is left alone, whatever is due
KEPT = 30  # attempts a row remembers
MAX_AGE = timedelta(hours=26)  # a message older than that, and not through, is given up with its next failure
GONE = 410


_waiting: list[weakref.WeakMethod[Callable[[], None]]] = []  # how to wake each sender of this process that still is


def call() -> None:
    """Wake the senders of this process: there are new deliveries."""
    for found in list(_waiting):
        if (wake := found()) is not None:
            wake()
        else:
            _waiting.remove(found)


_has_active = prepare_check(Webhook.objects.filter(active=True))


class Sender(DatabaseDuty):
    """A duty of every worker."""

    MESSAGE, LEVEL = "webhooks: %s", logging.DEBUG  # the pump tells
    EVERY = 1.0  # seconds
    IDLE = 5.0  # seconds between two looks where there is no webhook

    def __init__(self, *, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._idle = True

    def look(self) -> bool:
        self._idle = not _has_active()
        return not self._idle and send_due(clock=self._clock) > 0

    def on_call(self, wake: Callable[[], None]) -> None:
        """Register the wake-up. ``wake``, a method, ends its pause."""
        _waiting.append(weakref.WeakMethod(wake))

    def pause(self) -> float:
        return self.IDLE if self._idle or self.is_away else self.EVERY


def send_due(*, clock: Callable[[], datetime] = timezone.now) -> int:
    """Make one pass; return how many attempts were made."""
    claimed = claim(clock())
    if not claimed:
        return 0
    with asyncio.Runner() as runner:
        # Each attempt finds a thread free: a service that hangs takes none from the look-up of another's name.
        runner.get_loop().set_default_executor(ThreadPoolExecutor(2 * BATCH, "webhooks"))
        tasks = {runner.get_loop().create_task(post(delivery, clock())): delivery for delivery in claimed}
        while tasks:  # each is settled when it has an answer, so that a receiver that hangs has none sent twice
            done, _ = runner.run(asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))
            for task in done:
                settle(tasks.pop(task), task.result(), clock())
    return len(claimed)


def claim(now: datetime) -> list[Delivery]:
    """Take deliveries that are due: of each webhook its oldest, so that none waits for the backlog of another. Two
    workers never hold one: its row is changed only by the first."""
    due = Delivery.objects.filter(state__in=(Delivery.State.WAITING, Delivery.State.SENDING), due__lte=now)
    resting = Q(webhook__active=False) | Q(webhook__rest_until__gt=now)
    waiting = list(due.exclude(resting).order_by().values_list("webhook", "webhook__failures").distinct())
    random.shuffle(waiting)
    held: list[Delivery] = []
    for webhook, failures in waiting:
        share = min(1 if failures else EACH, BATCH - len(held))
        rows = due.filter(webhook=webhook).select_related("webhook").order_by("due", "pk")
        held += [row for row in rows[:share] if _has_room(row.webhook) and _take(row, now)]
    return held


def _has_room(webhook: Webhook) -> bool:
    """Tell whether its receiver may get one more now, whichever webhooks lead there. What has to wait stays due.
    Without Redis there is no limit: deliveries need none."""
    rate = rates.parse_rate(conf.WEBHOOK_RATE)
    if rate is None:
        return True
    try:
        url = webhook.url
        host = get_scheme(url) if is_apprise(url) else (urlsplit(url).hostname or "")[:MAX_KEY] or "none"
        return get_pattern(Throttle).take("webhooks.host", host, limit=rate[0], per=rate[1] / 1000).allowed
    except (ValueError, EngineUnavailable):  # an address that is none fails when it is sent to
        return True


def _take(row: Delivery, now: datetime) -> bool:
    claim = secrets.token_hex(16)
    same = Delivery.objects.filter(pk=row.pk, state=row.state, claim=row.claim, due=row.due)
    if not same.update(state=Delivery.State.SENDING, claim=claim, due=now + LEASE):
        return False
    row.claim = claim
    return True


def settle(delivery: Delivery, answer: PostResult, now: datetime) -> None:
    """Write the outcome of an attempt, unless the delivery is another worker's by now."""
    tries = delivery.tries + 1
    attempts = [*delivery.attempts, answer.facts()][-KEPT:]
    changes = {"tries": tries, "attempts": attempts, "claim": ""}
    if answer.ok:
        changes |= {"state": Delivery.State.SENT, "ended_at": now}
    elif answer.status == GONE or tries > len(SCHEDULE) or now - delivery.made_at > MAX_AGE:
        changes |= {"state": Delivery.State.DEAD, "ended_at": now}
    else:
        changes |= {"state": Delivery.State.WAITING, "due": now + timedelta(seconds=pause(tries, answer.retry_after))}
    if Delivery.objects.filter(pk=delivery.pk, claim=delivery.claim, state=Delivery.State.SENDING).update(**changes):
        _remember(delivery.webhook, answer, now)


def pause(tries: int, retry_after: float = 0.0) -> float:
    """Return seconds before the next attempt after so many: longer when the receiver asked for it, by an hour at
    most."""
    planned = SCHEDULE[tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  spreading load, not a secret
    return max(planned, min(retry_after, 3600.0))


def _remember(webhook: Webhook, answer: PostResult, now: datetime) -> None:
    row = Webhook.objects.filter(pk=webhook.pk)
    if answer.ok:
        row.exclude(failures=0, rest_until=None).update(failures=0, rest_until=None)
    elif answer.status == GONE:
        why = f"HTTP 410 Gone at {now:%Y-%m-%d %H:%M} UTC"
        row.update(active=False, stopped=why)
        log.warning("webhook %s was switched off: %s", webhook.name, why)
    else:
        rest = min(LONGEST_REST, 2 ** min(webhook.failures, 10))
        row.update(failures=F("failures") + 1, rest_until=now + timedelta(seconds=rest))
