"""The worker of examples/node-worker on a real server, with the rights of the account `worker` and no others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from machines.engine import Engine, EngineUnavailable, Job
from machines.management import library_command
from tests.conftest import IN_CI, missing
from tests.deployment.installation import RedisServer, write_secrets
from tests.deployment.tools import find
from tests.docs.test_examples import block
from tests.installation.processes import ROOT, eventually

pytestmark = pytest.mark.faults
SOURCE = ROOT / "examples" / "node-worker"
LEASE = 1500  # ms
LONG = 600_000  # ms that a handler takes which is not meant to end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with its package."""
    npm, node = find("npm"), find("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < 20:
        missing(f"Node.js 20 or later (here is {version.strip()})", "install a newer one")
    found = tmp_path_factory.mktemp("node") / "worker"
    shutil.copytree(SOURCE, found, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund"], cwd=found, capture_output=True, text=True, check=False
    )
    if done.returncode and not IN_CI:
        pytest.skip("npm could not install the client of Redis here")
    assert done.returncode == 0, done.stderr
    return found


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_secrets(tmp_path_factory.mktemp("secrets") / "deploy")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, secrets: Path) -> RedisServer:
    return RedisServer(tmp_path_factory.mktemp("redis") / "server", secrets)


@pytest.fixture
def up(server: RedisServer, secrets: Path) -> Iterator[RedisServer]:
    with server.running():
        load_library(server, secrets)
        yield server


@pytest.fixture
def engine(up: RedisServer, secrets: Path) -> Iterator[Engine]:
    engine = Engine.from_url(up.url("worker", secrets))
    engine.publish(json.loads(block("docs/tutorial.md", "json", '"id": "booking"')))
    yield engine
    for instance in engine.find("booking").instances:
        engine.delete("booking", instance.id)
    engine.client.close()


@pytest.fixture
def start(up: RedisServer, secrets: Path, folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a worker whose handler takes ``pace`` ms."""
    started = []

    def run(pace: int = 0, **variables: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "REDIS_URL": up.url("worker", secrets), "LEASE": str(LEASE)}
        started.append(
            subprocess.Popen(
                [find("node"), "worker.mjs", "booking", "book_courier"], cwd=folder, text=True,
                env=environment | {"PACE": str(pace)} | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def load_library(server: RedisServer, secrets: Path) -> None:
    assert library_command.run(["load", "--url", server.url("deploy", secrets)], {}) == 0


def find_job(engine: Engine, id: str, place: str) -> Job | None:
    """The job of an instance, if it is at that place."""
    found = engine.jobs("booking", "book_courier", place=place)
    return next((job for job in found if job.instance == id), None)


def is_held(engine: Engine, id: str) -> bool:
    return find_job(engine, id, "leased") is not None


def reached(engine: Engine, id: str, state: str) -> Callable[[], bool]:
    """Whether an instance is in a state, with what Python's worker would do for expired leases and due retries."""

    def look() -> bool:
        engine.tick()
        return engine.get("booking", id).state == state

    return look


def end(process: subprocess.Popen[str]) -> str:
    """Stop a worker as a supervisor does; return what it said."""
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0, said
    return said


def test_jobs_are_done_and_fail_as_the_handler_says(engine, start):
    engine.create("booking", "B-1", {"weight": 4})
    process = start()
    eventually(reached(engine, "B-1", "Booked"), "the job that was there is done")
    assert engine.get("booking", "B-1").data["courier"] == "bike"
    engine.create("booking", "B-2", {"weight": 10})  # it waits, and hears the bell
    eventually(reached(engine, "B-2", "Booked"), "a job that comes later is done")
    engine.create("booking", "B-3", {"weight": 40})
    eventually(reached(engine, "B-3", "Stuck"), "a job that fails is tried again, and then dead")
    assert engine.get("booking", "B-3").data["problem"] == "B-3 is too heavy for any courier"
    assert end(process) == ""


def test_a_lease_is_renewed_for_as_long_as_the_handler_takes(engine, start):
    engine.create("booking", "B-1", {"weight": 4})
    start(4 * LEASE)
    eventually(reached(engine, "B-1", "Booked"), "the handler ends")
    attempts = [step for step in engine.history("booking", "B-1") if step.event.startswith("done.invoke")]
    assert len(attempts) == 1
    assert engine.queues("booking")["book_courier"]["delayed"] == 0


def test_the_job_of_a_killed_worker_comes_back_and_ends_once(engine, start):
    engine.create("booking", "B-1", {"weight": 4})
    killed = start(LONG)
    eventually(lambda: is_held(engine, "B-1"), "a worker takes the job")
    killed.kill()
    killed.wait()
    process = start()
    eventually(reached(engine, "B-1", "Booked"), "another worker does it")
    assert [step.event.partition(".")[0] for step in engine.history("booking", "B-1")] == ["done", "(create)"]
    end(process)


def test_a_stopped_worker_finishes_what_it_can_and_hands_the_rest_back(engine, start):
    engine.create("booking", "B-1", {"weight": 4})
    process = start(2000)
    eventually(lambda: is_held(engine, "B-1"), "a worker takes the job")
    end(process)
    assert engine.get("booking", "B-1").state == "Booked"
    engine.create("booking", "B-2", {"weight": 4})
    process = start(LONG, GRACE="100")
    eventually(lambda: is_held(engine, "B-2"), "a worker takes the job")
    end(process)
    job = find_job(engine, "B-2", "ready")
    assert job is not None
    assert job.attempt == 0, "as if it had not been taken"


def test_a_job_that_its_instance_no_longer_waits_for_is_aborted(engine, start):
    engine.create("booking", "B-1", {"weight": 4})
    process = start(LONG, AT_ONCE="1")
    eventually(lambda: is_held(engine, "B-1"), "a worker takes the job")
    engine.delete("booking", "B-1")
    engine.create("booking", "B-2", {"weight": 4})
    eventually(lambda: is_held(engine, "B-2"), "the handler was told, and there is room for the next job")
    assert process.poll() is None


def test_it_goes_on_after_a_restart_of_the_server(server, secrets, folder):
    with server.running():
        load_library(server, secrets)
        engine = Engine.from_url(server.url("worker", secrets))
        engine.publish(json.loads(block("docs/tutorial.md", "json", '"id": "booking"')))
        environment = {"PATH": os.environ["PATH"], "REDIS_URL": server.url("worker", secrets), "LEASE": str(LEASE)}
        command = [find("node"), "worker.mjs", "booking", "book_courier"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        engine.create("booking", "R-1", {"weight": 4})
        eventually(reached(engine, "R-1", "Booked"), "a job is done")
    with server.running():
        eventually(lambda: answers(engine), "the engine is back")
        engine.create("booking", "R-2", {"weight": 4})
        eventually(reached(engine, "R-2", "Booked"), "a job is done after the restart")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
        assert process.returncode == 0
        engine.client.close()


def answers(engine: Engine) -> bool:
    try:
        return bool(engine.machines())
    except EngineUnavailable:
        return False
