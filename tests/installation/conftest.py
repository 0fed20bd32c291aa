"""Processes that a test starts end with it, whatever becomes of the test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from . import processes


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts Python code as a process."""
    started: list[subprocess.Popen] = []

    def start(code: str, *arguments: object, **options: object) -> subprocess.Popen:
        started.append(processes.python(code, *arguments, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
