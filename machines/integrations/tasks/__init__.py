"""A backend for Django's tasks framework: each task is a job on a queue, run by a worker.

::

    TASKS = {"default": {"BACKEND": "machines.tasks.SignalboxBackend"}}

Works with ``django.tasks`` (Django 6) and with its backport ``django_tasks``. The parts:

- ``framework``: the names of whichever of the two there is; ``backend``: enqueueing, results; ``options``, with
  the machine whose queues the jobs are on
- ``declarations``: the tasks that this process has declared, each a handler of its workers
- ``execution``: running a task, and what a worker does at its start; ``current_job``
- ``results``: what is known of a task, from its job and after it
- ``flows``: chains, groups and chords of tasks, each a statechart
- ``handover``, ``celery``, ``dramatiq``: jobs of invokes that workers of these run
- ``checks``: system checks

This module imports the framework only when the backend or a part of a flow is asked for: other programs import a
module ``tasks`` of each installed app.
"""

from typing import TYPE_CHECKING, Any

from .current_job import get_job

if TYPE_CHECKING:
    from .backend import SignalboxBackend
    from .flows import PREVIOUS, call, chain, chord, get_flow, group

FLOWS = ("PREVIOUS", "call", "chain", "chord", "get_flow", "group")
__all__ = ["PREVIOUS", "SignalboxBackend", "call", "chain", "chord", "get_flow", "get_job", "group"]


def __getattr__(name: str) -> Any:
    if name == "SignalboxBackend":
        from .backend import SignalboxBackend

        return SignalboxBackend
    if name in FLOWS:
        from . import flows

        return getattr(flows, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
