"""The digest of the error inbox: what fails, as one mail and one webhook message for each day or week.

It names handlers, exceptions and shapes of all machines, and no message, instance or value.
"""

import logging
import time
from typing import Any

from django.conf import settings
from django.core.mail import send_mail

from machines.conf import conf, mark_environment
from machines.connections import get_pattern
from machines.patterns import Throttle
from machines.people.actor import Actor
from machines.webhooks import fan_out, message_body, sender
from machines.webhooks.models import Delivery, Webhook

from .models import FailureGroup
from .queries import GroupView, list_groups

log = logging.getLogger(__name__)

EVENT = "errors.digest"
PERIODS = {"daily": 86_400, "weekly": 7 * 86_400}
"""Value of the setting ``ERROR_DIGEST`` -> seconds."""
MOST = 20  # groups in one digest
ACTOR = Actor("error digest", "worker")


def send_due() -> bool:
    """Send the digest if it is due by ``ERROR_DIGEST``; tell whether it was. One worker sends it in each period, also
    where another one was killed: a digest may be missed, and never comes twice."""
    period = PERIODS.get(conf.ERROR_DIGEST)
    if period is None or not get_pattern(Throttle).count(EVENT, "turn", limit=1, per=period).allowed:
        return False
    send_now()
    return True


def send_now() -> tuple[int, int]:
    """Send the digest to ``ERROR_DIGEST_TO`` and to the webhooks that name ``errors.digest``; return how many mails and
    how many deliveries were made. A mail that cannot be sent is logged."""
    found = list_groups(ACTOR, size=MOST)
    counted = {"groups": found.total, "regressions": sum(view.is_regression for view in found.items)}
    return _send_mail(found.items, counted), _deliver(found.items, counted)


def _send_mail(views: list[GroupView], counted: dict[str, int]) -> int:
    if not conf.ERROR_DIGEST_TO:
        return 0
    subject = f"Signalbox: {counted['groups']} open error groups, {counted['regressions']} regressions"
    lines = [_write_line(view) for view in views] or ["No open errors."]
    try:
        return send_mail(
            mark_environment(subject), "\n".join(lines) + "\n", settings.DEFAULT_FROM_EMAIL, list(conf.ERROR_DIGEST_TO)
        )
    except OSError as error:  # SMTPException is one
        log.error("the error digest was not mailed: %s", error)
        return 0


def _write_line(view: GroupView) -> str:
    mark = "REGRESSION " if view.is_regression else ""
    shape = f": {view.group.shape}" if view.group.shape else ""
    return (
        f"{mark}{view.group.kind or 'error'} in {view.group.handler}{shape}\n"
        f"  {view.open} open, {view.recent} in 24 h, {view.count} in all; {', '.join(view.machines)};"
        f" assigned to {view.group.assignee or 'nobody'}; group {view.group.pk}\n"
    )


def _deliver(views: list[GroupView], counted: dict[str, int]) -> int:
    """Make a delivery for each active webhook of all machines that names the event."""
    now = int(time.time() * 1000)
    body = message_body.write_body(EVENT, now, counted | {"items": [_make_facts(view) for view in views]})
    hooks = [hook for hook in Webhook.list_emitting() if EVENT in hook.types and not hook.machines]
    for hook in hooks:
        key = fan_out.new_key()
        Delivery.objects.create(webhook=hook, message=f"digest:{key}", key=key, type=EVENT, body=body)
    if hooks:
        sender.call()
    return len(hooks)


def _make_facts(view: GroupView) -> dict[str, Any]:
    group: FailureGroup = view.group
    return {
        "id": group.pk, "handler": group.handler, "kind": group.kind, "shape": group.shape, "open": view.open,
        "recent": view.recent, "count": view.count, "first_seen": view.first_seen, "last_seen": view.last_seen,
        "regression": view.is_regression, "assignee": group.assignee, "machines": list(view.machines),
    }  # fmt: skip
