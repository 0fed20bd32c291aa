"""Enqueues jobs and fires events when a database transaction commits, and not otherwise.

::

    from machines.jobs import enqueue, fire_on_commit

    @transaction.atomic
    def sign_up(request):
        customer = Customer.objects.create(...)
        enqueue("customer", "send_welcome", {"customer": customer.pk})

A worker that gets the job finds the row. Without this it may be quicker than the commit, or the row may never come.

Between the commit and the job lies a moment in which this process can die; then the row is there and the job is not.
Where that must not happen, look for rows without their job now and then, and put those again with ``unique``.
"""

import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from machines.audit import redaction
from machines.connections import get_engine
from machines.engine import arguments
from machines.engine.errors import SignalboxError
from machines.engine.jobs import records as enqueueing

log = logging.getLogger(__name__)


def enqueue(machine: str, src: str, payload: Any = None, *, using: str | None = None, **options: Any) -> None:
    """``Engine.enqueue`` when the transaction on the database ``using`` commits; at once where there is none.

    Never when it rolls back, to a savepoint included. ``payload`` is the job's input, as it is now; ``options`` are
    those of ``Engine.enqueue``. Raises BadInput here and now for what no job can be; what only the engine can say
    (UnknownMachine, EngineUnavailable) is logged with the whole job, but for what is sensitive in it, after the commit,
    and raised.
    """
    item = {"machine": machine, "src": src, "input": copy.deepcopy(payload), **options}
    call = enqueueing.read_item(item)
    enqueueing.build_arguments(call)
    _on_commit("job", item, lambda: get_engine().enqueue(**item), using)


def fire_on_commit(
    machine: str,
    id: str,
    event: str,
    payload: Mapping[str, Any] | None = None,
    *,
    using: str | None = None,
    **options: Any,
) -> None:
    """``Engine.fire`` when the transaction on the database ``using`` commits; at once where there is none.

    As ``enqueue``: a refusal comes after the commit, too. ``options`` are those of ``Engine.fire``.
    """
    item = {"machine": machine, "id": id, "event": event, "payload": copy.deepcopy(payload), **options}
    arguments.encode_fire(arguments.read_fire(item))
    _on_commit("event", item, lambda: get_engine().fire(**item), using)


def _on_commit(what: str, item: dict[str, Any], send: Callable[[], object], using: str | None) -> None:
    def sent() -> None:
        try:
            send()
        except SignalboxError as error:
            log.error("after the commit, the %s %r could not be sent: %s", what, _shown(item), error)
            raise

    transaction.on_commit(sent, using=using)


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    """As a log may have it."""
    redactor = redaction.available_redactor(item["machine"])
    if redactor is None:
        return item | {name: redaction.MASK for name in ("input", "payload") if item.get(name) is not None}
    if "event" in item:
        return item | {"payload": redactor.payload(item["event"], item["payload"])}
    return item | {"input": redactor.work(item["input"])}
