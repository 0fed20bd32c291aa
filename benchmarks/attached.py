"""``python -m benchmarks.attached``: what attaching costs a transition, and whether the mirror equals the table.

``cost``: transitions of one process, in rounds with and without the attachment; time, processor time and queries of
each. ``kills``: four processes move the rows of one table, in transactions that commit and that are rolled back, with
``update()``, ``bulk_create`` and deletions between; they are killed again and again, and the server of Redis twice.
Then one reconcile, and every row is compared. ``table``: a reconcile of a large table, when nothing is mirrored yet and
when all of it is.

The database is SQLite in a temporary folder, or ``--database postgres://…``, an empty one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from .stage import name_of, server

MODELS = "tests.attached.store"
CHILDREN = 4
ROWS = 200
LIFE = (1.0, 10.0)  # seconds after its first transition at which a process is killed
PARTS = ("cost", "kills", "table")


def main() -> None:
    given = _arguments()
    if given.child:
        _set_up()
        _move_without_end(Path(given.child))
        return
    with tempfile.TemporaryDirectory(prefix="signalbox-attached-") as folder, server(None) as url:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "DATABASE_URL": given.database or f"sqlite:///{folder}/store.sqlite3",
            "REDIS_URL": url,
        }
        _set_up()
        from django.core.management import call_command
        from django.db import connection

        from machines.connections import get_engine

        call_command("migrate", run_syncdb=True, verbosity=0)
        print(f"{name_of(get_engine().client)}, {connection.vendor}, load {os.getloadavg()[0]:.1f}", flush=True)
        if "cost" in given.parts:
            _measure_cost(given.rounds)
        if "kills" in given.parts:
            _measure_kills(given.transitions, Path(folder))
        if "table" in given.parts:
            _measure_table(given.rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attached", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--rounds", type=int, default=15, help="of 100 transitions each way")
    parser.add_argument("--transitions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--database", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _set_up() -> None:
    import django
    from django.conf import settings

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, MODELS]
    django.setup()


# What it costs


def _measure_cost(rounds: int) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from machines.attached import attach, detach
    from tests.attached.store.models import Purchase

    plain, mirrored, queries = [], [], {}
    for number in range(rounds + 1):
        rows = [Purchase.objects.create() for _ in range(100)]
        without = _move(rows)
        with CaptureQueriesContext(connection) as seen:
            _move(rows[:1])
        queries["plain"] = len(seen)
        made = attach(Purchase, "state")
        rows = [Purchase.objects.create() for _ in range(100)]
        attached = _move(rows)
        with CaptureQueriesContext(connection) as seen:
            _move(rows[:1])
        queries["attached"] = len(seen)
        detach(made)
        if number:  # the first round warms up
            plain.append(without)
            mirrored.append(attached)
    for place, word in enumerate(("time", "processor time of this process")):
        more = [(b[place] - a[place]) * 10 for a, b in zip(plain, mirrored, strict=True)]  # ms of one of 100
        alone, with_it = (median(one[place] for one in some) * 10 for some in (plain, mirrored))
        print(f"{word}: a transition with its save {alone:.3f} ms, attached {with_it:.3f} ms;"
              f" more: {median(more):.3f} ms (rounds {min(more):.3f} to {max(more):.3f})")  # fmt: skip
    print(f"queries more: {queries['attached'] - queries['plain']}", flush=True)


def _move(rows) -> tuple[float, float]:
    begun, busy = time.perf_counter(), time.process_time()
    for row in rows:
        row.cancel() if row.state != "canceled" else row.reopen("new")
        row.save()
    return time.perf_counter() - begun, time.process_time() - busy


# Kills


def _measure_kills(transitions: int, folder: Path) -> None:
    from machines.attached import attach, detach
    from machines.attached.reconcile import Reconcile
    from machines.connections import get_engine
    from tests.attached.store.models import Purchase

    made, engine = attach(Purchase, "state"), get_engine()
    Purchase.objects.all().delete()
    for _ in range(ROWS):
        Purchase.objects.create()
    begun, killed, outages = time.monotonic(), 0, 0
    with _children(folder) as children:
        while (count := _count(folder)) < transitions:
            time.sleep(0.05)
            killed += sum(child.look() for child in children)
            if count > (outages + 1) * transitions // 3:  # the server answers nobody for two seconds
                outages += 1
                pid = engine.client.info("server")["process_id"]
                os.kill(pid, signal.SIGSTOP)
                time.sleep(2)
                os.kill(pid, signal.SIGCONT)
    print(f"{_count(folder):,} transitions in {time.monotonic() - begun:.0f} s; processes killed: {killed + CHILDREN},"
          f" outages of Redis: {outages}")  # fmt: skip
    report = Reconcile(engine, made).run()
    print("one reconcile:", *report.lines(), sep="\n")
    table = {str(pk): state for pk, state in Purchase.objects.values_list("pk", "state")}
    mirror = {one.id: one.state for one in _walk(engine, made.machine)}
    differing = sum(mirror.get(id) != state for id, state in table.items()) + len(mirror.keys() - table.keys())
    print(f"after it {differing} of {len(table)} rows differ from their instance", flush=True)
    detach(made)


def _walk(engine, machine: str) -> Iterator:
    cursor = None
    while True:
        page = engine.find(machine, limit=500, cursor=cursor)
        yield from page
        if (cursor := page.cursor) is None:
            return


class Child:
    """A process that moves rows. It is killed some time after its first one, and another one takes its place."""

    def __init__(self, count: Path) -> None:
        self._count = count
        self._begin()

    def _begin(self) -> None:
        self._before = self._size()
        self._end: float | None = None
        with (self._count.parent / "output.log").open("a") as output:
            words = [sys.executable, "-m", "benchmarks.attached", "--child", str(self._count)]
            self.process = subprocess.Popen(words, stdout=output, stderr=output)

    def _size(self) -> int:
        return self._count.stat().st_size if self._count.exists() else 0

    def look(self) -> int:
        """Kill it where its time has come; return how many were killed."""
        if self.process.poll() is not None:
            raise SystemExit((self._count.parent / "output.log").read_text()[-3000:])
        if self._end is None and self._size() > self._before:
            self._end = time.monotonic() + random.uniform(*LIFE)
        if self._end is None or time.monotonic() < self._end:
            return 0
        self.kill()
        self._begin()
        return 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def _children(folder: Path) -> Iterator[list[Child]]:
    children = [Child(folder / f"moves-{n}") for n in range(CHILDREN)]
    try:
        yield children
    finally:
        for child in children:
            child.kill()


def _count(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("moves-*"))


def _move_without_end(count: Path) -> None:
    """Move rows in every way there is; each transition adds a byte to a file."""
    from django.db import OperationalError, transaction

    from machines.attached import attach
    from tests.attached.store.models import Purchase

    attach(Purchase, "state")
    while True:
        # A database that is busy for too long is what a project would see, too.
        with contextlib.suppress(OperationalError, Purchase.DoesNotExist, IndexError), count.open("ab", 0) as file:
            _do_something(file, Purchase, transaction)


def _do_something(file, model, transaction) -> None:
    fate = random.random()
    pk = random.choice(model.objects.values_list("pk", flat=True)[:ROWS])
    if fate < 0.04:
        model.objects.filter(pk=pk).update(state=random.choice(["confirmed", "shipped"]))
        return
    if fate < 0.06:
        model.objects.bulk_create([model(state="confirmed")])
        return
    if fate < 0.08:
        model.objects.filter(pk=pk)._raw_delete("default") if fate < 0.07 else model.objects.get(pk=pk).delete()
        return
    with transaction.atomic():
        row = model.objects.select_for_update().get(pk=pk)
        for _ in range(random.randint(1, 3)):
            row.cancel() if row.state != "canceled" else row.reopen(random.choice(["new", "shipped"]))
            row.save()
            file.write(b".")
        if fate < 0.3:
            transaction.set_rollback(True)


# A large table


def _measure_table(rows: int) -> None:
    from machines.attached import attach, detach
    from machines.attached.reconcile import Reconcile
    from machines.connections import get_engine
    from tests.attached.store.models import Purchase

    Purchase.objects.all().delete()
    for start in range(0, rows, 10_000):
        Purchase.objects.bulk_create([Purchase() for _ in range(min(10_000, rows - start))])
    made = attach(Purchase, "state")
    for word in ("nothing mirrored yet", "all of it mirrored"):
        begun, busy = time.perf_counter(), time.process_time()
        before = _peak()
        report = Reconcile(get_engine(), made).run()
        took = time.perf_counter() - begun
        print(f"{rows:,} rows, {word}: {took:.1f} s ({rows / took:,.0f} rows a second,"
              f" {time.process_time() - busy:.1f} s of this process); {dict(report.counts)};"
              f" peak memory {before:.0f} to {_peak():.0f} MB", flush=True)  # fmt: skip
    print("instances:", dict(Counter(get_engine().counts(made.machine))))
    detach(made)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
