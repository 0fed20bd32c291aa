"""The job that runs the current task."""

from contextvars import ContextVar

from machines.worker.job import Job

current: ContextVar[Job | None] = ContextVar("signalbox_task_job", default=None)


def get_job() -> Job | None:
    """Return the job of the task that runs here, for its progress, deadline and idempotency key; None outside of one,
    and in a task that another backend runs."""
    return current.get()
