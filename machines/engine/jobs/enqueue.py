"""Builds the arguments of ``sb_enqueue`` from an ``Enqueue`` record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from machines.engine import arguments, limits
from machines.engine.errors import BadInput

from .records import Enqueue

FIELDS = tuple(field.name for field in fields(Enqueue))


def read_item(item: Enqueue | Mapping[str, Any]) -> Enqueue:
    """Return one item of ``Engine.enqueue_many``, an Enqueue or its fields by name, as an Enqueue."""
    try:
        return item if isinstance(item, Enqueue) else Enqueue(**item)
    except TypeError as error:
        allowed = ", ".join(FIELDS)
        raise BadInput(f"a job for enqueue_many() has the fields {allowed}: {error}", code="SB409") from error


def build_arguments(call: Enqueue) -> tuple[Any, ...]:
    """Build the twelve arguments of one job for ``sb_enqueue``, in its order. Raises BadInput or BadPayload."""
    arguments.check_machine(call.machine)
    arguments.encode_whole("now", call.now)
    if call.instance_key is not None:
        arguments.check_instance(call.instance_key)
    arguments.check_key(call.key)
    src = arguments.check_handler(call.src)
    return (
        src,
        src if call.queue is None else arguments.check_queue(call.queue),
        "" if call.input is None else arguments.encode_document("input", call.input, limits.MAX_PAYLOAD),
        arguments.check_between("priority", call.priority, 0, limits.MAX_PRIORITY),
        arguments.check_between("delay", call.delay, 0, limits.MAX_DELAY),
        arguments.check_unique(call.unique),
        arguments.check_between("attempts", call.attempts, 1, limits.MAX_ATTEMPTS),
        arguments.check_between("backoff", call.backoff, 0, limits.MAX_BACKOFF),
        arguments.check_between("lease", call.lease, 1, limits.MAX_LEASE),
        arguments.check_between("timeout", call.timeout, 0, limits.MAX_TIMEOUT),
        "1" if call.jitter else "0",
        arguments.join_kinds(call.stop) if call.stop else "",
    )


def build_row(words: tuple[Any, ...], now: int | None) -> dict[str, Any]:
    """Build the hash of a job that was just enqueued, so that it need not be read back. ``created`` is this process's
    estimate of the server's time."""
    src, queue, given, priority, delay, unique, attempts, backoff, lease, timeout, jitter, stop = words
    created = round(time.time() * 1000) if now is None else now
    return {
        "place": "delayed" if delay else "ready",
        "src": src,
        "queue": queue,
        "input": given,
        "priority": priority,
        "unique": unique,
        "attempts": attempts,
        "backoff": backoff,
        "lease": lease,
        "timeout": timeout,
        "jitter": jitter,
        "stop": stop,
        "created": created,
        "due": created + delay,
    }
