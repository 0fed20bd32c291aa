"""Builders for tests that look at real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILED = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}
"""Where compiled modules are kept, for a process that gets nothing else of this environment."""
PATIENCE = 180.0  # seconds before a test says that something never happened


def python(code: str, *arguments: object, **options: object) -> subprocess.Popen:
    """A Python process that runs ``code`` with the project importable; its output is a pipe of text."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and only waits for its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError:  # it is gone meanwhile, or this system has no /proc
        command = ["ps", "-o", "stat=", "-p", str(pid)]
        status = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return bool(status) and not status.startswith("Z")


def eventually(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for another process to get there; fail with ``what`` when it does not."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


def descendants(pid: int) -> set[int]:
    """Every process that ``pid`` started, and those that they started."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in table.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.add(child)
            waiting.append(child)
    return found
