"""Signals of Django about bound rows. ``machines.signals`` has the public names."""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import Signal

log = logging.getLogger(__name__)

stepped = Signal()
"""A step of an instance, from the log of its partition, sent by a worker: at least once for each step, in the order of
steps of one instance, after the row's columns were written. ``sender``: the model; ``field``: the machine field;
``machine``, ``instance`` (its id), ``event``, ``state``, ``revision``; ``at``: ms since the epoch; ``using``: the alias
of the row's database."""

delivered = Signal()
"""An entry of the outbox has ended, sent by the process that sent it, after its outcome was written. ``sender``: the
model; ``entry``: the OutboxEntry; ``error``: the exception that it failed with, or None."""


def notify(signal: Signal, sender: Any, **facts: Any) -> None:
    """Send a signal; what a receiver raises is logged and goes no further."""
    if not signal.has_listeners(sender):
        return
    for receiver, answer in signal.send_robust(sender, **facts):
        if isinstance(answer, Exception):
            log.error("the receiver %r of a machine's signal failed", receiver, exc_info=answer)
