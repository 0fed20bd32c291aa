"""Tasks on this test's keys, run in this process or by a worker."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from machines.engine import Engine
from machines.integrations.tasks import declarations, execution
from machines.integrations.tasks.options import MACHINE
from machines.testing.job_runner import JobRun, JobRunner
from machines.worker.registry import discover, handlers
from tests.configuration import configure
from tests.installation.processes import ROOT

from . import settings as of_tasks


@pytest.fixture
def tasks(engine: Engine, settings, monkeypatch) -> Iterator[ModuleType]:
    """The tasks of the app, declared for this test alone."""
    monkeypatch.setattr(declarations, "_declared", {})
    before = set(discover())
    settings.TASKS = of_tasks.TASKS
    execution.prepare()
    configure(settings, TASK_RESULTS=of_tasks.SIGNALBOX["TASK_RESULTS"])
    module = importlib.import_module("tests.integrations.tasks.app.tasks")
    module.calls.clear()
    yield module
    declarations.listen(lambda path, task: None)
    handlers._queues.clear()
    for name in set(handlers) - before:
        del handlers._handlers[name]


@pytest.fixture
def run(engine: Engine) -> Callable[[], list[JobRun]]:
    """Runs the jobs of tasks that are ready."""
    return lambda: JobRunner(engine, None).run([MACHINE], None, 100, False)


@pytest.fixture
def start(redis_url: str, prefix: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts processes of the project of these tests."""
    started = []

    def start(*arguments: str) -> subprocess.Popen:
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.integrations.tasks.settings",
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": prefix,
            "DATABASE_URL": f"sqlite:///{tmp_path}/tasks.sqlite3",
            "SIGNALBOX_HOME": str(tmp_path),
        }
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
