"""Signals of Django about steps, jobs and alarms. What a receiver raises is logged and stops nothing.
Where an event loop runs in the thread that sends, receivers that are coroutines are not called."""

import logging
from typing import Any

from django.db import close_old_connections
from django.dispatch import Signal

from machines.engine import Refused
from machines.worker.job import Job

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
"""An attempt of a job has failed, sent by its worker, after Redis has it, in the thread that reports ended jobs: a
receiver that takes long holds those up. ``sender``: the handler's name; ``machine``, ``instance`` ("" for none),
``queue``, ``job`` (its id), ``attempt``, ``attempts``, ``place`` (delayed, dead or handled); ``error``: the exception,
which may hold sensitive values."""

job_dead = Signal()
"""The attempt was the last one; ``place`` is handled where the instance left the state for it (``onError``). Sent after
``job_failed`` with the same arguments. Of a job whose workers died there is no signal: see the alarm ``dead``."""

instance_refused = Signal()
"""An event that this process fired was refused, sent in the thread of the call, before it raises. ``sender``: the name
of the machine; ``instance`` (its id), ``event``; ``error``: the Refused, whose explanation may hold sensitive
values."""

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
    try:
        answers = signal.send_robust(sender, **facts)
    except Exception:  # Django cannot run receivers that are coroutines where an event loop runs already
        log.exception("some receivers of a machine's signal were not called")
        return
    for receiver, answer in answers:
        if isinstance(answer, Exception):
            log.error("the receiver %r of a machine's signal failed", receiver, exc_info=answer)


def send_failure(job: Job, error: BaseException, place: str) -> None:
    """Send the signals of a failed attempt."""
    facts = {name: getattr(job, name) for name in ("machine", "instance", "queue", "attempt", "attempts")}
    sent = (job_failed, job_dead) if place in ("dead", "handled") else (job_failed,)
    if not any(signal.has_listeners(job.src) for signal in sent):
        return
    close_old_connections()
    for signal in sent:
        notify(signal, job.src, **facts, job=job.id, place=place, error=error)
    close_old_connections()


def send_refusal(error: Refused) -> None:
    """Send the signal of an event that was refused."""
    why = error.explanation
    notify(instance_refused, why.machine, instance=why.id, event=why.event, error=error)
