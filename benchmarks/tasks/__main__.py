"""``python -m benchmarks.tasks``: tasks of Django's framework, by our backend and by others. Writes TASKS.md.

All of them run on Django 6.1 in one virtual environment, on one server, with one producer and one worker in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from machines.server import Server

from .. import report
from ..queues import installed
from ..report import Aim, Row, Section
from ..rounds import Measured, interleave
from ..stage import name_of

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGE = HERE.parent / "TASKS.md"
REQUIREMENTS = HERE / "requirements.txt"
PATIENCE = 120.0  # seconds for the tasks of one round
AIM = 5.0


@dataclass(frozen=True, slots=True)
class Contender:
    """``worker``: its command of ``django-admin``; ``count``: tasks of a round; ``keeps``: whether it keeps results."""

    title: str
    backend: str
    task: str
    worker: tuple[str, ...]
    count: int
    keeps: bool = True


OURS = ("worker",)
VTASKS = ("runworker", "--queue", "default")
CONTENDERS = (
    Contender("Signalbox", "signalbox", "plain", OURS, 10_000),
    Contender("Signalbox, coroutine", "signalbox", "coroutine", OURS, 10_000),
    Contender("django-tasks-redis", "redis", "plain", ("run_redis_tasks", "--continuous"), 1_500),
    Contender("django-tasks-db on SQLite", "db", "plain", ("db_worker", "--no-startup-delay"), 300),
    Contender("django-vtasks", "vtasks", "plain", VTASKS, 5_000, keeps=False),
    Contender("django-vtasks, coroutine", "vtasks", "coroutine", VTASKS, 5_000, keeps=False),
)


class Stage:
    def __init__(self, python: Path, url: str, folder: Path) -> None:
        self._python, self._url, self._folder = python, url, folder
        self.client = redis.Redis.from_url(url)
        self.enqueued: dict[str, list[float]] = {each.title: [] for each in CONTENDERS}

    def run(self, contender: Contender) -> float:
        """Enqueue tasks and have a worker run them; return how many a second from a tenth of them on."""
        self.client.flushall()
        database, moments = self._folder / "current.sqlite3", self._folder / "moments"
        for file in self._folder.glob("current.sqlite3*"):
            file.unlink()
        moments.unlink(missing_ok=True)
        environment = os.environ | {
            "BENCH_BACKEND": contender.backend, "BENCH_URL": self._url, "BENCH_TASKS": str(contender.count),
            "BENCH_DATABASE": str(database), "BENCH_MOMENTS": str(moments), "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "benchmarks.tasks.settings",
        }  # fmt: skip
        template = self._folder / f"{contender.backend}.sqlite3"
        if not template.exists():
            self._call(environment, "-m", "django", "migrate", "-v0")
            database.rename(template)
        shutil.copy(template, database)
        produce = ("-m", "benchmarks.tasks.produce", contender.task)
        rate, last = self._call(environment, *produce).split()
        self.enqueued[contender.title].append(float(rate))
        with (self._folder / "worker.log").open("w") as log:
            command = [self._python, "-m", "django", *contender.worker]
            worker = subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)
        try:
            self._wait(worker, moments)
            if contender.keeps:
                self._wait_result(environment, produce, last, contender.count - 1)
        finally:
            worker.terminate()
            worker.wait()
        first, ended = json.loads(moments.read_text())
        return (contender.count - contender.count // 10) / ((ended - first) / 1e9)

    def _wait(self, worker: subprocess.Popen[bytes], moments: Path) -> None:
        until = time.monotonic() + PATIENCE
        while not moments.exists():
            if worker.poll() is not None or time.monotonic() > until:
                raise RuntimeError(
                    f"the worker did not run all tasks:\n{(self._folder / 'worker.log').read_text()[-3000:]}"
                )
            time.sleep(0.05)

    def _wait_result(self, environment: dict[str, str], produce: tuple[str, ...], last: str, wanted: int) -> None:
        """The last task has its result, a moment after it has run."""
        for _ in range(5):
            try:
                said = self._call(environment, *produce, last)
            except RuntimeError:
                continue
            if said.split()[-1] == str(wanted):
                return
        raise RuntimeError("the last task has no result")

    def _call(self, environment: dict[str, str], *arguments: str) -> str:
        done = subprocess.run(
            [self._python, *arguments], cwd=self._folder, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="Python 3.12 or later, for all of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="backends of these names")
    parser.add_argument("--dry", action="store_true", help="leave TASKS.md as it is")
    given = parser.parse_args()
    version = subprocess.run([given.python, "-V"], capture_output=True, text=True).stdout.strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (3, 12):
        parser.error(f"the other backends need Python 3.12 or later, this is {version}: name one by --python")
    started, before = time.monotonic(), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder,
        Server(Path(folder) / "server", persistent=False) as server,
    ):
        stage = Stage(installed.python(REQUIREMENTS, given.python), server.url, Path(folder))
        field = [each for each in CONTENDERS if not given.only or each.backend in given.only]
        ran = interleave(given.rounds, {each.title: _runner(stage, each) for each in field})
        put = {each.title: Measured(each.title, tuple(stage.enqueued[each.title])) for each in field}
        measured_on = name_of(stage.client)
    sections = [
        _section(
            "Tasks a second, one worker process", field, ran, "Enqueued beforehand; timed from a tenth of them on."
        ),
        _section("Enqueued a second, one process, one after the other", field, put, ""),
    ]
    print(report.text(sections))
    aims = [aim for section in sections[:1] for aim in section.aims]
    print("\n".join(map(str, aims)))
    if given.dry or given.only:
        return
    pins = re.findall(r"^(django[\w-]*)\S*==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    measured = ", ".join(f"{name} {pinned}" for name, pinned in pins if name != "django-guardian")
    load = f"its load was {before:.1f} before the run and {os.getloadavg()[0]:.1f} at its end"
    report.write(
        sections, aims, measured_on, time.monotonic() - started, path=PAGE,
        command="python -m benchmarks.tasks --python PATH",
        notes=[
            "",
            f"Measured: {measured}, all on {version}.",
            "Tasks that do nothing and return a number, which all but django-vtasks keep as a result.",
            "Each backend has the options that it comes with.",
            f"The machine is shared; {load}, on {os.cpu_count()} cores: compare within this run.",
        ],
    )  # fmt: skip


def _runner(stage: Stage, contender: Contender) -> Callable[[], float]:
    return lambda: stage.run(contender)


def _section(title: str, field: list[Contender], found: dict[str, Measured], note: str) -> Section:
    """Ours beside the fastest other with the same kind of task, and beside the fastest that keeps results."""
    rows, aims = [], []
    for each in field:
        row = Row(each.title, found[each.title].rate)
        others = [other for other in field if other.backend != "signalbox"]
        if each.backend == "signalbox" and others:
            keeping = [found[other.title] for other in others if other.keeps]
            alike = [found[other.title] for other in others if other.task == each.task]
            for peer in {max(some, key=lambda one: one.rate).name for some in (keeping, alike) if some}:
                row.ratios[peer] = found[each.title].against(found[peer])
                aims.append(Aim(f"{each.title} against {peer}", AIM, row.ratios[peer]))
        rows.append(row)
    return Section(title, rows, note, aims)


if __name__ == "__main__":
    main()
