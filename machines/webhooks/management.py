"""What operators do with webhooks: the service that pages and the API call. It takes ``operate`` on every machine,
since a webhook carries messages out of the installation. Each call is in the audit, refused ones too."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from machines.audit.entries import AuditRecord
from machines.audit.models import describe_address
from machines.conf.encryption.ciphers import Unreadable
from machines.connections import get_engine
from machines.engine.limits import check_machine_name
from machines.people.actor import Actor

from . import fan_out, message_body
from .addresses import check_address
from .errors import BadReceiver, BadWebhook, UnknownWebhook
from .models import Delivery, LogGap, Webhook
from .signing import new_secret

RIGHT = "operate"
BOTH = timedelta(days=1)  # a former secret is valid beside its successor for so long
MOST = 100  # webhooks: each message is compared with all of them
MOST_TYPES, LONGEST_TYPE, LONGEST_NAME = 50, 200, 80
TEST = "signalbox.test"
WAITING = (Delivery.State.WAITING, Delivery.State.SENDING)


def list_webhooks(actor: Actor) -> QuerySet[Webhook]:
    """List webhooks, each with ``waiting`` and ``dead``, how many deliveries are. Raises Forbidden."""
    actor.demand(RIGHT)
    return Webhook.objects.filter(for_alarms=False).annotate(
        waiting=Count("deliveries", filter=Q(deliveries__state__in=WAITING)),
        dead=Count("deliveries", filter=Q(deliveries__state=Delivery.State.DEAD)),
    )


def gaps(actor: Actor) -> QuerySet[LogGap]:
    """Return what was lost before it was read, newest first."""
    actor.demand(RIGHT)
    return LogGap.objects.all()


def get(actor: Actor, id: int) -> Webhook:
    """Return a webhook. Raises Forbidden, UnknownWebhook."""
    actor.demand(RIGHT)
    webhook = Webhook.objects.filter(pk=id, for_alarms=False).first()
    if webhook is None:
        raise UnknownWebhook(f"webhook {id} not found")
    return webhook


def deliveries(actor: Actor, id: int, *, state: str = "", before: int | None = None) -> QuerySet[Delivery]:
    """List deliveries, newest first. ``state``: one of Delivery.State; ``before``: the number of the last one seen."""
    rows = get(actor, id).deliveries.all()
    if state:
        rows = rows.filter(state=state)
    return rows if before is None else rows.filter(pk__lt=before)


def make(
    actor: Actor, *, name: str, url: str, machines: Iterable[str] = (), types: Iterable[str] = ("*",)
) -> tuple[Webhook, str]:
    """Make a webhook for what is emitted from now on; return it and its secret, which nobody is shown again.

    Raises Forbidden, BadWebhook, EngineUnavailable.
    """
    with actor.records("webhook.make", target=str(name)) as entry:
        actor.demand(RIGHT)
        fields = _check_fields(name=name, url=url, machines=machines, types=types)
        if Webhook.objects.count() >= MOST:
            raise BadWebhook("name", f"{MOST} webhooks is the maximum")
        secret = new_secret()
        webhook = Webhook(secret=secret, maker=actor.name, since=_begin_now(), **fields)
        _save(webhook)
        entry.note(**describe_address(webhook.url), machines=webhook.machines, types=webhook.types)
        return webhook, secret


def change(actor: Actor, id: int, **fields: Any) -> Webhook:
    """Change a webhook. ``name``, ``url``, ``machines``, ``types``; what is left out stays."""
    with _act_on(actor, "webhook.change", id) as (webhook, entry):
        held = {"name": webhook.name, "url": webhook.url, "machines": webhook.machines, "types": webhook.types}
        if unknown := set(fields) - set(held):
            raise BadWebhook(min(unknown), f"a webhook has {', '.join(held)}, and no {min(unknown)}")
        for field, value in _check_fields(**held | fields).items():
            setattr(webhook, field, value)
        webhook.failures, webhook.rest_until = 0, None
        _save(webhook)
        entry.note(**fields | (describe_address(webhook.url) if "url" in fields else {}))
        return webhook


def pause(actor: Actor, id: int) -> Webhook:
    """Pause a webhook: what waits stays; what is emitted meanwhile is never sent."""
    return _switch(actor, id, False)


def resume(actor: Actor, id: int) -> Webhook:
    """Resume a webhook: what waited is sent, and what is emitted from now on."""
    return _switch(actor, id, True)


def rotate(actor: Actor, id: int) -> tuple[Webhook, str]:
    """Give the webhook a new secret. For a day messages carry a signature with the old one, too; the one before that
    ends now."""
    with _act_on(actor, "webhook.rotate", id) as (webhook, _):
        return webhook, renew_secret(webhook)


def renew_secret(webhook: Webhook) -> str:
    """Give a receiver a new secret, and return it."""
    kept = "" if isinstance(webhook.secret, Unreadable) else webhook.secret
    webhook.former, webhook.former_until, webhook.secret = kept, timezone.now() + BOTH, new_secret()
    webhook.save(update_fields=["secret", "former", "former_until"])
    return webhook.secret


def delete(actor: Actor, id: int) -> None:
    """Delete a webhook with its delivery log."""
    with _act_on(actor, "webhook.delete", id) as (webhook, entry):
        entry.note(**describe_address(webhook.url))
        webhook.delete()


def test(actor: Actor, id: int) -> Delivery:
    """Send a message of the type ``signalbox.test`` at once, also to a paused webhook."""
    with _act_on(actor, "webhook.test", id) as (webhook, _):
        if not webhook.active:
            raise BadWebhook("active", "the webhook is paused: resume it first")
        key, now = fan_out.new_key(), timezone.now()
        body = message_body.write_body(TEST, int(now.timestamp() * 1000), {"webhook": webhook.name, "by": actor.name})
        Webhook.objects.filter(pk=webhook.pk).update(rest_until=None)
        return Delivery.objects.create(webhook=webhook, message=f"test:{key}", key=key, type=TEST, body=body)


def redeliver(actor: Actor, id: int, delivery: int) -> Delivery:
    """Send it once more, now and with all its attempts, whatever became of it. Its ``webhook-id`` stays."""
    with _act_on(actor, "webhook.redeliver", id) as (webhook, entry):
        entry.note(delivery=delivery)
        return resend(webhook, delivery)


def resend(webhook: Webhook, delivery: int) -> Delivery:
    """Have a delivery sent once more. Raises UnknownWebhook for one that is not there, or under way."""
    ended = Delivery.objects.filter(webhook=webhook, pk=delivery).exclude(state=Delivery.State.SENDING)
    fresh = {"state": Delivery.State.WAITING, "due": timezone.now(), "tries": 0, "ended_at": None}
    if not ended.update(**fresh, made_at=timezone.now()):
        raise UnknownWebhook(f"{webhook.name} has no delivery {delivery} that is not under way")
    Webhook.objects.filter(pk=webhook.pk).update(rest_until=None)
    return Delivery.objects.get(pk=delivery)


def _switch(actor: Actor, id: int, active: bool) -> Webhook:
    with _act_on(actor, "webhook.change", id) as (webhook, entry):
        if active and not webhook.active:
            webhook.since = _begin_now()
        webhook.active, webhook.stopped, webhook.failures, webhook.rest_until = active, "", 0, None
        webhook.save(update_fields=["active", "stopped", "failures", "rest_until", "since"])
        entry.note(active=active)
        return webhook


def _begin_now() -> int:
    """Return the moment from which messages are sent. Logs nobody was reading are read from their ends."""
    engine = get_engine()
    if not Webhook.list_emitting().exists():
        fan_out.align(engine)
    return engine.emitted_logs().now()


@contextmanager
def _act_on(actor: Actor, action: str, id: int) -> Iterator[tuple[Webhook, AuditRecord]]:
    with actor.records(action, target=str(id)) as entry:
        webhook = get(actor, id)
        entry.name(target=webhook.name)
        yield webhook, entry


def _save(webhook: Webhook) -> None:
    try:
        with transaction.atomic():
            webhook.save()
    except IntegrityError:
        raise BadWebhook("name", f"a webhook named {webhook.name!r} already exists") from None


def _check_fields(*, name: Any, url: Any, machines: Any, types: Any) -> dict[str, Any]:
    """Return what a webhook is made of, checked. Raises BadWebhook for the first that does not fit."""
    name, types = check_name(name, BadWebhook), check_texts("types", types, BadWebhook)
    machines = check_machines(machines, BadWebhook)
    if not types or len(types) > MOST_TYPES or any(not 0 < len(type) <= LONGEST_TYPE for type in types):
        raise BadWebhook("types", f"1 to {MOST_TYPES} types, of 1 to {LONGEST_TYPE} characters each; * is any of them")
    if not all(type.isprintable() for type in types):  # a NUL no database takes, and nobody would see why
        raise BadWebhook("types", "a type holds characters that can be seen, and no NUL")
    if any(type.count("*") > 5 for type in types):
        raise BadWebhook("types", "a type has five * at most")
    return {"name": name, "url": str(check_address(url)), "machines": machines, "types": types}


def check_name(name: Any, refusal: type[BadReceiver]) -> str:
    name = name.strip() if isinstance(name, str) else ""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise refusal("name", f"enter a name of 1 to {LONGEST_NAME} visible characters")
    return name


def check_machines(given: Any, refusal: type[BadReceiver]) -> list[str]:
    for name in (found := check_texts("machines", given, refusal)):
        if (why := check_machine_name(name)) is not None:
            raise refusal("machines", f"the name {name!r:.80} {why}")
    return found


def check_texts(field: str, given: Any, refusal: type[BadReceiver]) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable) or not all(isinstance(one, str) for one in given):
        raise refusal(field, f"{field} is a list of texts")
    return list(dict.fromkeys(given))
