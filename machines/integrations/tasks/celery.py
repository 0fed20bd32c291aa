"""Tasks of Celery, called by ``invoke``: their own worker runs them, and the result ends the invoke.

::

    # handlers.py                                    # the module of the Celery app
    from machines.integrations.tasks.celery import add_handler
    from machines.integrations.tasks.celery import report_ends
    from shop.tasks import charge

    add_handler("charge", charge)                    report_ends()
"""

from typing import Any

from celery import Task, signals

from . import handover
from .handover import HEADER, HOUR, Ticket, report_done, report_failed


def add_handler(name: str, task: Task, *, seconds: int = HOUR) -> None:
    """Have jobs for the handler ``name`` run by a task of Celery. Its keyword arguments are the input of the job.

    ``seconds``: how long the task may wait and run, its own retries included; then the job is tried again.
    """

    def send(arguments: dict[str, Any], ticket: Ticket) -> None:
        task.apply_async(kwargs=arguments, headers={HEADER: ticket})

    handover.add_handler(name, send, seconds, "Celery", task.name)


def report_ends() -> None:
    """Have workers of Celery report the ends of tasks that came from ``add_handler``. Call it where the app is made."""
    signals.task_success.connect(_report_success, dispatch_uid="signalbox")
    signals.task_failure.connect(_report_failure, dispatch_uid="signalbox")
    signals.task_revoked.connect(_report_revocation, dispatch_uid="signalbox")


class TaskRevoked(Exception):
    """A task of Celery was revoked, or had expired."""


def _report_success(sender: Any = None, result: Any = None, **_: Any) -> None:
    if (ticket := _find_ticket(getattr(sender, "request", None))) is not None:
        report_done(ticket, result)


def _report_failure(sender: Any = None, exception: Any = None, **_: Any) -> None:
    if (ticket := _find_ticket(getattr(sender, "request", None))) is not None:
        report_failed(ticket, exception)


def _report_revocation(request: Any = None, **_: Any) -> None:
    if (ticket := _find_ticket(request)) is not None:
        report_failed(ticket, TaskRevoked("the task was revoked, or had expired"))


def _find_ticket(request: Any) -> Any:
    """Return what the message carries, or None for a task that no handler sent."""
    headers = getattr(request, "headers", None) or getattr(request, "request_dict", None) or {}
    return headers.get(HEADER) or getattr(request, HEADER, None)
