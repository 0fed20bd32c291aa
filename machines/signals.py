"""Signals of Django about steps, jobs and alarms. What a receiver raises is logged and stops nothing."""

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

job_failed = Signal()
"""An attempt of a job has failed, sent by its worker, after Redis has it. ``sender``: the handler's name; ``machine``,
``instance`` ("" for none), ``queue``, ``job`` (its id), ``attempt``, ``attempts``; ``error``: the exception, which may
hold sensitive values."""

job_dead = Signal()
"""An attempt was the last one: the job is dead, or its instance took the failure. Sent after ``job_failed``, with the
same arguments. A job whose workers died has no signal: see the alarm ``dead``."""

instance_refused = Signal()
"""A call of this process was refused by an instance or its machine. ``sender``: the engine's class; ``machine``,
``instance``, ``event``, ``actor``; ``error``: the exception, whose ``code`` says why."""

alarm_raised = Signal()
"""An alarm has begun, sent after it is recorded, by the worker or the web process that did. ``sender``: AlarmState;
``key``, ``kind``, ``machine`` ("" for the whole installation), ``severity``, ``at``. A process that is killed between
the two sends none: a route of alarms always does."""

alarm_ended = Signal()
"""An alarm is over: as ``alarm_raised``."""


def notify(signal: Signal, sender: Any, **facts: Any) -> None:
    """Send a signal; what a receiver raises is logged and goes no further."""
    if not signal.has_listeners(sender):
        return
    for receiver, answer in signal.send_robust(sender, **facts):
        if isinstance(answer, Exception):
            log.error("the receiver %r of a machine's signal failed", receiver, exc_info=answer)
