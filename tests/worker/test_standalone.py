"""``signalbox worker --handlers``: a worker of a process that never loads Django."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from machines.engine import Engine
from tests.installation.processes import eventually

HANDLERS = """
import sys
from machines.worker import handler

@handler("plain")
def plain(job):
    return {"django": "django" in sys.modules, "pid": job.data["n"]}

@handler("coroutine")
async def coroutine(job):
    return {"django": "django" in sys.modules, "pid": job.data["n"]}
"""
PROGRAM = Path(__file__).resolve().parents[2] / "machines" / "cli.py"


def work(handler: str) -> dict:
    """A machine that waits, then has a job of this handler done."""
    return {
        "id": handler,
        "initial": "Waiting",
        "context": {"n": 1, "django": True},
        "states": {
            "Waiting": {"after": {"50ms": "Working"}},
            "Working": {
                "invoke": {
                    "src": handler,
                    "onDone": {"target": "Done", "actions": {"set": {"django": "event.result.django"}}},
                }
            },
            "Done": {"type": "final"},
        },
    }


@pytest.fixture
def worker(tmp_path: Path, redis_url: str, prefix: str) -> Iterator:
    """Starts workers in a folder with a module of handlers."""
    (tmp_path / "tasks.py").write_text(HANDLERS)
    clean = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment = clean | {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "PYTHONUNBUFFERED": "1"}
    started = []

    def start(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-P", str(PROGRAM), "worker", *arguments]
        started.append(subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()


@pytest.mark.faults
@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_fires_timers_and_runs_functions_and_coroutines_without_django(engine: Engine, worker, processes):
    for name in ("plain", "coroutine"):
        engine.publish(work(name))
        engine.create(name, "a")
    process = worker("--handlers", "tasks", "--processes", processes)
    for name in ("plain", "coroutine"):
        eventually(lambda name=name: engine.get(name, "a").state == "Done", f"{name} is done")
        assert engine.get(name, "a").data["django"] is False
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "handlers coroutine, map_reduce.map" in said


@pytest.mark.faults
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--handlers", "no_such.tasks"], "there is no module 'no_such.tasks'"),
        (["--handlers", "tasks", "--concurrency", "0"], "concurrency must be 1 to 1000, not 0"),
        (["--handlers", "tasks", "--url", "http://nowhere"], "not 'http'"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_start(worker, arguments, complaint):
    process = worker(*arguments)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, complaint in said) == (2, True), said
    assert "Traceback" not in said
