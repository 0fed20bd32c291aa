"""``python -m benchmarks.retention``: how fast finished instances go, its share of the server, the size of the archive.

Instances of ten steps finish, are archived and let go by the duty of the workers as it is, with its rests. The database
is SQLite in a temporary folder, or ``--database postgres://…``, an empty one whose tables are made and dropped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from .stage import PREFIX, name_of, server

STEPS = 10
TEN_MILLION = 10_000_000
BATCH = 500  # instances in one pipeline while setting up
OPENED = 300  # archived instances that are opened


def definition(name: str) -> dict[str, Any]:
    """Ten states in a row: the event of each step carries a note, and changes two of four data fields."""
    names = [f"Step{number}" for number in range(STEPS)]
    step = {"actions": {"set": {"count": "count + 1", "note": "event.note"}}}
    states: dict[str, Any] = {one: {"on": {"next": {"target": then, **step}}} for one, then in pairwise(names)}
    types = {"count": {"type": "integer", "default": 0}, "note": {"type": "string", "default": ""}}
    types |= {"customer": {"type": "string"}, "amount": {"type": "number"}}
    return {
        "id": name,
        "initial": names[0],
        "index": ["customer"],
        "retain": {"finished": "0s"},
        "context": {"type": "object", "properties": types},
        "states": states | {names[-1]: {"type": "final"}},
    }


def main() -> None:
    given = _arguments()
    with server(None) as url, _site(url, given.database):
        from machines.connections import get_engine

        engine = get_engine()
        print(
            f"{name_of(engine.client)}, {given.instances:,} instances of {STEPS} steps, load {os.getloadavg()[0]:.1f}"
        )
        _measure(engine, given.instances)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retention", description=__doc__)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--database", default="", help="postgres://…; default: SQLite in a temporary folder")
    return parser.parse_args()


@contextlib.contextmanager
def _site(url: str, database: str) -> Iterator[None]:
    """Django on this server, with the tables of the product."""
    folder = tempfile.mkdtemp(prefix="signalbox-bench-")
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "dashboard.settings", "REDIS_URL": url, "SIGNALBOX_PREFIX": PREFIX,
        "SIGNALBOX_HOME": folder, "DATABASE_URL": database, "LOG_LEVEL": "WARNING",
    }  # fmt: skip
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    try:
        yield
    finally:
        if database:
            call_command("migrate", "machines", "zero", verbosity=0)
        shutil.rmtree(folder)


def _measure(engine: Any, count: int) -> None:
    from machines.catalog import publishing

    publishing.publish(definition("ten"))
    used = _cpu(engine)
    _fill(engine, count)
    print(f"one step, server          {1e6 * (_cpu(engine) - used) / count / STEPS:8.1f} µs, to compare with")
    root = engine.keys.partition("ten").root
    held = sum(int(engine.client.memory_usage(f"{root}:{kind}:order-{count // 2:09}")) for kind in "ih")
    empty = _size()
    _let_go(engine)
    _weigh(count, held, _size() - empty)
    _open(count)


def _fill(engine: Any, count: int) -> None:
    root = engine.keys.partition("ten").root
    for at in range(0, count, BATCH):
        pipeline = engine.client.pipeline(transaction=False)
        for number in range(at, min(at + BATCH, count)):
            id, data = f"order-{number:09}", {"customer": f"c{number % 9973}@example.com", "amount": number / 100}
            pipeline.fcall("sb_create", 1, root, id, json.dumps(data))
            for step in range(STEPS - 1):
                note = json.dumps({"note": f"note {number * (step + 7) % 99991}"})
                pipeline.fcall("sb_fire", 1, root, id, "next", note, "", "", f"user{number % 7}", "")
        if any(reply[0] != "OK" for reply in pipeline.execute()):
            raise RuntimeError("a step was refused")


def _let_go(engine: Any) -> None:
    """Run the duty until nothing is due; print its rate, and the share of the server it took."""
    from machines.engine.instances.retirement import Retirement
    from machines.retention.duty import RetentionDuty

    calls: list[int] = []
    retire = Retirement.retire

    def noted(self: Retirement, *args: Any, **options: Any) -> Any:
        found = retire(self, *args, **options)
        calls.append(found.micros)
        return found

    Retirement.retire = noted  # type: ignore[method-assign]
    duty = RetentionDuty(engine)
    used, own, began = _cpu(engine), time.process_time(), time.monotonic()
    while duty.once():
        pass
    took, own = time.monotonic() - began, time.process_time() - own
    used = _cpu(engine) - used
    print(f"let go                    {duty.gone / took:8,.0f} a second")
    print(f"share of the server       {100 * used / took:8.1f} % of one core, {1e6 * used / duty.gone:.1f} µs for each")
    print(f"CPU of the worker         {100 * own / took:8.1f} %, {1e6 * own / duty.gone:.0f} µs for each")
    print(f"removal of 100, server    {median(calls) / 1000:8.2f} ms, longest {max(calls) / 1000:.2f} ms")


def _cpu(engine: Any) -> float:
    used = engine.client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def _size() -> int:
    """Bytes of the archive with its indexes: of its table on PostgreSQL, of the whole file on SQLite."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM machines_archivedinstance")
            cursor.execute(
                "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0) FROM pg_inherits "
                "WHERE inhparent = 'machines_archivedinstance'::regclass"
            )
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(connection.settings_dict["NAME"]).stat().st_size


def _weigh(count: int, held: int, size: int) -> None:
    from machines.models import ArchiveTotal

    body = ArchiveTotal.objects.get(machine="ten").bytes / count
    print(f"in Redis                  {held:8,} bytes, without indexes")
    print(f"in the archive            {size / count:8,.0f} bytes, {body:,.0f} of them the body")
    print(f"ten million, extrapolated {size / count * TEN_MILLION / 1e9:8.1f} GB")


def _open(count: int) -> None:
    """Open archived instances, and their pages."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    from machines.archive.opening import open_archived

    ids = [f"order-{number * count // OPENED:09}" for number in range(OPENED)]
    _print_times("opening one", [_time(open_archived, "ten", id) for id in ids])
    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.create_superuser("bench", "", None))
    pages = [_time(client.get, f"/machines/ten/instances/{id}/") for id in ids]
    _print_times("its page", pages[10:])


def _time(call: Any, *words: Any) -> float:
    began = time.perf_counter()
    call(*words)
    return (time.perf_counter() - began) * 1000


def _print_times(title: str, taken: list[float]) -> None:
    print(f"{title:25} {median(taken):8.1f} ms, p95 {quantiles(taken, n=20)[-1]:.1f} ms")


if __name__ == "__main__":
    main()
