"""``python -m benchmarks.binding``: what a machine field costs, and whether its rows survive rollbacks and kills.

``cost`` fires through the field, and by hand: ``engine.fire``, then the state into the row and ``save()``; in rounds,
one after the other, in one process. ``kills`` has four processes fire at the rows of one table, in transactions that
commit, in transactions that are rolled back, and without one; they are killed again and again, and so is the worker.
Then one ``reconcile``, and every row and every event is counted.

The database is SQLite in a temporary folder, or ``--database postgres://…``, an empty one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from .stage import name_of, server

MACHINES = ("parcel", "plain")
ROWS = 50
CHILDREN = 4
LIFE = (0.5, 12.0)  # seconds after its first fire at which a process is killed
WORKER_LIFE = (15.0, 40.0)
DRAIN = 180.0  # seconds the worker may take for what is left: a claim of a dead process holds for a minute
DEFINITION = {
    "initial": "here",
    "history": 10_000,
    "states": {"here": {"on": {"move": "there"}}, "there": {"on": {"move": "here"}}},
}


def main() -> None:
    given = _arguments()
    if given.child:
        _set_up()
        _fire_without_end(Path(given.child))
        return
    with tempfile.TemporaryDirectory(prefix="signalbox-binding-") as folder, server(None) as url:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "tests.binding.settings",
            "DATABASE_URL": given.database or f"sqlite:///{folder}/shop.sqlite3",
            "REDIS_URL": url,
        }
        _set_up()
        _make_tables()
        from django.db import connection

        from machines.connections import get_engine

        print(f"{name_of(get_engine().client)}, {connection.vendor}, load {os.getloadavg()[0]:.1f}", flush=True)
        if "cost" in given.parts:
            _measure_cost(given.rounds, given.each)
        if "kills" in given.parts:
            _measure_kills(given.fires, Path(folder))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.binding", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["cost", "kills"], choices=["cost", "kills"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--each", type=int, default=200, help="fires of each way in a round")
    parser.add_argument("--fires", type=int, default=10_000)
    parser.add_argument("--database", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _set_up() -> None:
    import django

    django.setup()


def _make_tables() -> None:
    from django.core.management import call_command

    from machines.connections import get_engine

    call_command("migrate", run_syncdb=True, verbosity=0, skip_checks=True)
    for name in MACHINES:
        get_engine().publish(DEFINITION | {"id": name})


# What it costs


def _measure_cost(rounds: int, each: int) -> None:
    from machines.connections import get_engine
    from tests.binding.shop.models import Parcel, PlainParcel

    engine = get_engine()
    engine.emitted_logs().log_steps("parcel", seconds=3600)  # as a worker that serves the field has it
    bound = [Parcel.objects.create(number=f"cost-{n}") for n in range(ROWS)]
    plain = [PlainParcel.objects.create(number=f"cost-{n}", place="here") for n in range(ROWS)]
    for row in plain:
        engine.create("plain", row.number)

    def by_field() -> None:
        for n in range(each):
            bound[n % ROWS].place.fire("move")

    def by_hand() -> None:
        for n in range(each):
            row = plain[n % ROWS]
            row.place = engine.fire("plain", row.number, "move").state
            row.save()

    ways: list[Callable[[], None]] = [by_field, by_hand]
    seen: dict[Callable[[], None], list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways if number % 2 else reversed(ways):
            began = time.perf_counter()
            way()
            if number:  # the first round warms up
                seen[way].append((time.perf_counter() - began) / each * 1000)
    ratios = [field / hand for field, hand in zip(seen[by_field], seen[by_hand], strict=True)]
    print(f"field: {median(seen[by_field]):.3f} ms a fire; engine.fire and save(): {median(seen[by_hand]):.3f} ms")
    print(f"ratio: {median(ratios):.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f})")


# Kills


def _measure_kills(fires: int, folder: Path) -> None:
    from tests.binding.shop.models import Parcel

    for n in range(ROWS):
        Parcel.objects.create(number=f"kill-{n}")
    began, killed = time.monotonic(), Counter[str]()
    with _processes(folder) as (start_child, start_worker):
        children = [Child(folder / f"fires-{n}", start_child) for n in range(CHILDREN)]
        worker, worker_end = start_worker(), _life(WORKER_LIFE)
        while _count(folder) < fires:
            time.sleep(0.05)
            killed["processes that fire"] += sum(child.look() for child in children)
            if time.monotonic() > worker_end:
                killed["workers"] += _kill(worker)
                worker, worker_end = start_worker(), _life(WORKER_LIFE)
        killed["processes that fire"] += sum(_kill(child.process) for child in children)
        attempts = _count(folder)
        print(f"{attempts:,} fires in {time.monotonic() - began:.0f} s; killed: {dict(killed)}")
        _drain()
        _kill(worker)
    _judge(folder)


class Child:
    """A process that fires. It is killed some time after its first fire, and another one takes its place."""

    def __init__(self, count: Path, start: Callable[[Path], subprocess.Popen]) -> None:
        self._count, self._start = count, start
        self._begin()

    def _begin(self) -> None:
        self._before = self._size()
        self._end: float | None = None
        self.process = self._start(self._count)

    def _size(self) -> int:
        return self._count.stat().st_size if self._count.exists() else 0

    def look(self) -> int:
        """Kill it where its time has come; return how many were killed."""
        if self.process.poll() is not None:  # by itself, before it fired
            self._begin()
        if self._end is None and self._size() > self._before:
            self._end = _life(LIFE)
        if self._end is None or time.monotonic() < self._end:
            return 0
        _kill(self.process)
        self._begin()
        return 1


def _life(bounds: tuple[float, float]) -> float:
    return time.monotonic() + random.uniform(*bounds)


def _kill(process: subprocess.Popen) -> int:
    process.send_signal(signal.SIGKILL)
    process.wait()
    return 1


@contextlib.contextmanager
def _processes(folder: Path) -> Iterator[tuple[Callable[[Path], subprocess.Popen], Callable[[], subprocess.Popen]]]:
    started: list[subprocess.Popen] = []

    def start(*words: str) -> subprocess.Popen:
        with (folder / "output.log").open("a") as output:
            started.append(subprocess.Popen([sys.executable, *words], stdout=output, stderr=output))
        return started[-1]

    try:
        yield (
            lambda count: start("-m", "benchmarks.binding", "--child", str(count)),
            lambda: start("manage.py", "worker"),
        )
    finally:
        for process in started:
            if process.poll() is None:
                _kill(process)


def _count(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("fires-*"))


def _fire_without_end(count: Path) -> None:
    """Fire at rows in every way there is; each fire adds a byte to a file, before it."""
    from django.db import OperationalError, transaction

    from machines.engine import SignalboxError
    from tests.binding.shop.models import Entry, Parcel

    rows = list(Parcel.objects.filter(number__startswith="kill-"))

    def fire(kind: str) -> None:
        token = uuid.uuid4().hex
        with count.open("ab") as file:
            file.write(b".")
        Entry.objects.create(token=token, kind=kind)
        random.choice(rows).place.fire("move", {"token": token}, key=token if kind == "intended" else None)
        if kind == "intended":
            Entry.objects.filter(token=token).update(kind="confirmed")

    while True:
        # A database that is busy for too long, and a server that is, are what a project would see, too.
        with contextlib.suppress(OperationalError, SignalboxError):
            way = random.random()
            if way < 0.3:
                fire("intended")
                continue
            with transaction.atomic():
                for _ in range(random.randint(1, 3)):
                    fire("committed")
                transaction.set_rollback(way < 0.6)


def _drain() -> None:
    from machines.models import OutboxEntry

    until = time.monotonic() + DRAIN
    while OutboxEntry.objects.filter(state="waiting").exists():
        if time.monotonic() > until:
            raise SystemExit(f"{OutboxEntry.objects.filter(state='waiting').count()} entries are still waiting")
        time.sleep(0.5)


def _judge(folder: Path) -> None:
    from machines.binding.reconcile import Reconcile, describe
    from machines.connections import get_engine
    from machines.models import OutboxEntry
    from tests.binding.shop.models import Entry, Parcel

    engine = get_engine()
    field = Parcel._meta.get_field("place")
    print("one reconcile:", *describe(Reconcile(engine, field).run()), sep="\n")
    after = Reconcile(engine, field, dry_run=True).run()
    happened = Counter(
        step.payload["token"]
        for row in Parcel.objects.filter(number__startswith="kill-")
        for step in engine.history("parcel", row.number, limit=10_000)
        if step.event == "move"
    )
    asked = dict(Entry.objects.values_list("token", "kind"))
    must = {token for token, kind in asked.items() if kind in ("committed", "confirmed")}
    print(f"committed or confirmed: {len(must):,}; without an answer when killed: {len(asked) - len(must):,}")
    print(f"lost: {len(must - happened.keys())}; doubled: {sum(1 for n in happened.values() if n > 1)};"
          f" after a rollback: {len(happened.keys() - asked.keys())}")  # fmt: skip
    print(f"entries that failed: {OutboxEntry.objects.filter(state='failed').count()}")
    print(f"rows that differ after one reconcile: {after.differences} of {Parcel.objects.count()}")


if __name__ == "__main__":
    main()
