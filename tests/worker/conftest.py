"""A machine with work to do, and processes to do it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from machines.engine import Engine, Instance
from tests.installation.processes import ROOT

from . import builders


@pytest.fixture
def errand(engine: Engine) -> Callable[[str], Instance]:
    """Publishes the errand machine; calling it starts one."""
    engine.publish(builders.errand())
    return lambda id: engine.create("errand", id, {"what": f"the errand of {id}"}, now=builders.START)


@pytest.fixture
def start(engine: Engine, redis_url: str, prefix: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts worker processes on this test's keys."""
    started = []

    def start(*arguments):
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.worker.settings",
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": prefix,
            "DATABASE_URL": f"sqlite:///{tmp_path}/worker.sqlite3",  # never that of whoever runs this
            "LOG_LEVEL": "DEBUG",
        }
        process = subprocess.Popen(
            [sys.executable, "manage.py", "worker", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
