"""Signalbox's backend in the place of the two that Django's own tests of its tasks framework use."""

from __future__ import annotations

from typing import Any

from django.tasks import Task, TaskResult

from machines.connections import get_engine
from machines.integrations.tasks import declarations, execution
from machines.integrations.tasks.options import MACHINE, Options
from machines.tasks import SignalboxBackend
from machines.testing.job_runner import JobRunner

declarations.listen(execution.add_handler)


class DummyBackend(SignalboxBackend):
    """Tasks wait on the queue, which a test can look at."""

    @property
    def results(self) -> list[TaskResult]:
        engine = get_engine()
        jobs = engine.jobs(MACHINE, "default") if MACHINE in engine.machines() else []
        return [self.get_result(job.id) for job in jobs]

    def clear(self) -> None:
        for result in self.results:
            get_engine().withdraw(MACHINE, result.id, actor="test", reason="clear")


class ImmediateBackend(SignalboxBackend):
    """Tasks run once, and before ``enqueue`` returns."""

    job_options = Options({"attempts": 1, "stop": ("ResultRefused",)})

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        result = super().enqueue(task, args, kwargs)
        JobRunner(get_engine(), None).run([MACHINE], None, 100, False)
        result.refresh()
        return result
