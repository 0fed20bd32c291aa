"""What the fixture ``signalbox`` gives."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from machines.catalog.definition_files import compile_file, find_files
from machines.conf.testing_keys import remove_keys
from machines.engine import AsyncEngine, DefinitionError, Engine, Instance, PublishedMachine, UnknownInstance

from .assertions import Assertions, describe_history, describe_instance, describe_outbox
from .clock import Clock, ClockedAsyncEngine, ClockedEngine, Duration, Moment, read_duration, read_moment
from .django_binding import bind, list_app_folders, update_rows
from .job_runner import Handlers, JobRun, JobRunner, take_job

MOST_TIMES = 100_000  # due times that one call of advance passes
MOST_RUNS = 1_000  # jobs that one call of run_jobs runs


class Signalbox(Assertions):
    """Machines of one test: an engine on keys of its own, and a clock that the test moves.

    ``engine``: an Engine whose calls happen at the time of the clock; ``url`` and ``prefix``: where its keys are;
    ``now``: the time of the clock in ms since the epoch. It begins at the real time and stands still until ``advance``.
    """

    def __init__(self, engine: ClockedEngine, url: str, folders: Sequence[Path]) -> None:
        """Prepare the kit. ``folders``: where relative paths of definitions are looked up, in this order."""
        self.engine: Engine = engine
        self.url = url
        self.prefix = engine.keys.prefix
        self._clock = engine.clock
        self._folders = folders

    @property
    def now(self) -> int:
        return self._clock.now

    def async_engine(self) -> AsyncEngine:
        """Make an AsyncEngine on the same keys and clock, for one event loop. Close it: ``async with
        signalbox.async_engine() as engine``."""
        return ClockedAsyncEngine.at(self._clock, self.url, prefix=self.prefix)

    # Machines and instances

    def publish(self, definition: dict[str, Any] | str | Path) -> PublishedMachine:
        """Publish a definition, given as a dict or as the path of a file of any format, relative to the test's folder
        or to pytest's root. Raises DefinitionError with every finding, FileNotFoundError."""
        if isinstance(definition, (str, Path)):
            return self.engine.publish(compile_file(self._find(Path(definition))))
        return self.engine.publish(definition)

    def create(
        self, machine: str, id: str | None = None, data: Mapping[str, Any] | None = None, **options: Any
    ) -> Instance:
        """Create an instance, as ``Engine.create`` does."""
        return self.engine.create(machine, id, data, **options)

    def fire(
        self, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None, **options: Any
    ) -> Instance:
        """Send an event to an instance, as ``Engine.fire`` does."""
        with self._hints(machine, id):
            return self.engine.fire(machine, id, event, payload, **options)

    def get(self, machine: str, id: str) -> Instance:
        """Read an instance, as ``Engine.get`` does."""
        with self._hints(machine, id):
            return self.engine.get(machine, id)

    @contextlib.contextmanager
    def _hints(self, machine: str, id: str) -> Iterator[None]:
        """Add to the error of a missing instance what waits for it in the outbox."""
        try:
            yield
        except UnknownInstance as error:
            for line in describe_outbox(machine, id):
                error.add_note(line)
            raise

    def history(self, machine: str, id: str) -> str:
        """Return the history of an instance as text, oldest step first."""
        return describe_history(self.engine, machine, id, limit=100)

    def describe(self, machine: str, id: str) -> str:
        """Return an instance with its data, timers, jobs, problems and history as text."""
        return describe_instance(self.engine, machine, id)

    # Time

    def advance(self, duration: Duration, *, run_jobs: bool | Handlers = False) -> int:
        """Move the clock, and do what becomes due on the way, in order, each at its own moment; return how many timers
        fired, jobs became ready or were taken back, and messages were delivered.

        ``duration``: a text such as "30d", "2w" or "1h 30m", a number of seconds, or a timedelta. ``run_jobs``: run
        ready jobs at each of these times, first at the present one, by the registered handlers or by these. Raises
        AssertionError for a timer whose step fails.
        """
        return self._advance(self.now + read_duration(duration), run_jobs)

    def advance_to(self, moment: Moment, *, run_jobs: bool | Handlers = False) -> int:
        """Move the clock to a moment that is not past, a datetime or ms since the epoch, as ``advance`` does."""
        target = read_moment(moment)
        if target < self.now:
            raise ValueError(f"{moment!r} is before the present of this test, {self.now}; the clock only moves forward")
        return self._advance(target, run_jobs)

    def start_clock(self, moment: Moment) -> None:
        """Set the clock before the first instance is created, also to a moment that is past. Afterwards ``advance``
        moves it."""
        self._clock.now = read_moment(moment)

    def _advance(self, target: int, run_jobs: bool | Handlers) -> int:
        moved = 0
        for _ in range(MOST_TIMES):
            if run_jobs:
                self.run_jobs(None if run_jobs is True else run_jobs)
            count, due = self._drive()
            moved += count
            if due is None or due > target:
                if count:
                    continue  # the changes may have made jobs ready, or messages due, at the same time
                if self.now == target:
                    return moved
                self._clock.move(target)
            else:
                self._clock.move(due)
        raise AssertionError(
            f"the clock passed {MOST_TIMES} moments at which something was due, and there are more until the target; "
            "a timer that arms itself again needs shorter steps of advance"
        )

    def _drive(self) -> tuple[int, int | None]:
        """Do what is due now in all machines; return how much moved, and when something is due next."""
        machines = list(self.engine.machines())
        report = self.engine.drive(machines, retry=True)
        if report.faults:
            raise report.faults[0]
        due = min(report.dues.values(), default=None)
        if not report.moved and due is not None:
            self._require_no_failed_timers(machines)
        return report.moved, due

    def _require_no_failed_timers(self, machines: list[str]) -> None:
        """Fail for a timer whose step failed: the engine would try it again every minute."""
        for machine in machines:
            if not self.engine.live(machine).late:
                continue
            for instance in self.engine.find(machine, error="timer"):
                raise AssertionError(f"a timer cannot fire\n{self.describe(machine, instance.id)}")

    # Jobs

    def run_jobs(
        self,
        handlers: Handlers | None = None,
        *,
        machine: str | None = None,
        queue: str | None = None,
        limit: int = MOST_RUNS,
        reraise: bool = False,
    ) -> list[JobRun]:
        """Run ready jobs in this process until there are none, and return what ran, in order.

        ``handlers``: name -> function, plain or async, in place of those that ``@handler`` registered. A handler that
        raises fails its attempt as in a worker: it is tried again after its backoff (``advance``, then ``run_jobs``),
        or dead. Its traceback is printed, and is in the ``JobRun``; with ``reraise`` its exception is raised after the
        attempt is recorded. Raises AssertionError for a job without a handler.
        """
        __tracebackhide__ = True
        machines = sorted(self.engine.machines()) if machine is None else [machine]
        runner = JobRunner(self.engine, handlers)
        return runner.run(machines, queue, limit, reraise)

    def complete_job(self, machine: str, name: str, result: Any = None, *, instance: str = "") -> Instance | None:
        """End the one job of an invoke or a handler with a result, without running a handler; return the instance.
        Raises AssertionError where there is no such job, or several."""
        __tracebackhide__ = True
        job = take_job(self.engine, self.now, name, machine, (machine, instance))
        return self.engine.complete(job, result)

    def fail_job(
        self, machine: str, name: str, error: str, *, instance: str = "", kind: str = "", retry: bool = False
    ) -> str:
        """End the one job of an invoke or a handler as failed, for good unless ``retry``; return "dead" or "delayed".
        ``kind``: the name of the exception. Raises AssertionError where there is no such job, or several."""
        __tracebackhide__ = True
        job = take_job(self.engine, self.now, name, machine, (machine, instance))
        return self.engine.fail(job, error, kind=kind, retry=retry)

    def update_rows(self, *, reraise: bool = False) -> None:
        """Do what a worker does for rows with a machine field: send what waits in the outbox, also in the transaction
        of the test, create missing instances and write the columns. It sends no signal ``stepped``. With
        ``reraise`` the error of an event or a creation that fails is raised. A row in memory keeps its state:
        ``row.refresh_from_db()``."""
        __tracebackhide__ = True
        update_rows(self.engine, reraise=reraise)

    # Definitions

    def publish_folder(self, folder: str | Path) -> list[PublishedMachine]:
        """Publish every definition of a folder and the folders below it."""
        return [self.engine.publish(compile_file(file)) for file in find_files(self._find(Path(folder)))]

    def _find(self, path: Path) -> Path:
        for folder in self._folders:
            if (folder / path).exists():
                return folder / path
        where = ", ".join(str(folder) for folder in dict.fromkeys(self._folders))
        raise FileNotFoundError(f"there is no {path} in {where}")


@contextlib.contextmanager
def open_engine(url: str) -> Iterator[ClockedEngine]:
    """Give an engine with a clock on keys of its own, and remove these afterwards."""
    prefix = f"t{secrets.token_hex(6)}:"
    engine = ClockedEngine.at(Clock(), url, prefix=prefix)
    try:
        yield engine
    finally:
        remove_keys(url, prefix)
        engine.client.close()


@contextlib.contextmanager
def open_kit(url: str, *, folders: Sequence[Path], base: Path, root: Path) -> Iterator[Signalbox]:
    """Give the kit of one test, and remove its keys afterwards. ``folders``: definitions to publish first, next to
    those of the apps of a Django project; ``base``: the folder of the test; ``root``: that of the run."""
    with open_engine(url) as engine, bind(engine, url, engine.keys.prefix):
        kit = Signalbox(engine, url, [base, root, Path.cwd()])
        _publish_all(kit, [*folders, *list_app_folders()])
        yield kit


def _publish_all(kit: Signalbox, folders: Sequence[Path]) -> None:
    """Publish the definitions that every test finds; fail with the findings where one cannot be published."""
    for folder in folders:
        try:
            kit.publish_folder(folder)
        except DefinitionError as error:
            pytest.fail("\n".join(error.__notes__), pytrace=False)
        except FileNotFoundError as error:
            pytest.fail(f"the pytest option signalbox_definitions: {error}", pytrace=False)
