"""``python -m benchmarks.page_profile``: what each page costs the web process: CPU, queries, round trips, bytes.

One server of its own with the demo's machines and what the demo's traffic makes of them; nothing moves while pages are
measured. Requests go through the whole of Django in one thread of a process of their own. The CPU time of that thread
is the best of many answers, so that a busy machine changes little; the rest is counted.

    python -m benchmarks.page_profile --against ../before   # both trees in turns on the same data, and their ratio
    python -m benchmarks.page_profile --profile machine     # where the time of one page goes
    python -m benchmarks.page_profile --save FOLDER         # the pages as files, without what differs each time
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
ROUNDS, TIMES, WARM = 3, 12, 3
BEATS, DEVICES = 400, 40
USER = "supervisor"
PAGES = {
    "overview": "/",
    "overview, cards": "/?view=cards",
    "machine": "/machines/activation/",
    "machine, nested": "/machines/delivery/",
    "machine, filtered": "/machines/activation/?state=Waiting&order=newest",
    "list of a machine alone": "/machines/activation/instances/?state=Waiting",
    "instance": "/machines/activation/instances/ATV-001:ABC/",
    "instance, nested": "/machines/delivery/instances/{order}/",
    "versions": "/machines/activation/versions/",
    "queues": "/queues/",
    "queue": "/queues/new_device/todo/",
    "queue, dead jobs": "/queues/new_device/todo/?place=dead",
    "workers": "/workers/",
    "errors": "/errors/",
    "error": "/errors/{error}/",
    "alarms": "/alarms/",
    "bulk actions": "/bulk/",
    "new bulk action": "/machines/activation/bulk/?action=suspend&state=Waiting",
    "bulk action": "/bulk/{bulk}/",
    "audit": "/audit/",
    "approvals": "/approvals/",
    "search": "/search/?q=ATV-00",
    "suggestions": "/search.json?q=ATV-00",
    "account": "/account/",
    "wall": "/wall/",
}
CHANGING = (
    (re.compile(r'(nonce|csrf-token|data-now|data-at|datetime|title|name="key" value)="[^"]*"'), r'\1=""'),
    (re.compile(r'(name="csrfmiddlewaretoken" value)="[^"]*"'), r'\1=""'),
    (re.compile(r"(<time[^>]*>)[^<]*"), r"\1"),
    (re.compile(r"\d\d:\d\d:\d\d"), "00:00:00"),
)
"""Parts of a page that are others each time it is made."""


def main() -> None:
    given = _arguments()
    if given.measure:
        _work(given)
        return
    from benchmarks import stage

    with tempfile.TemporaryDirectory(prefix="signalbox-bench-site-") as folder, stage.server(None) as url:
        environment = {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings", "REDIS_URL": url, "SIGNALBOX_PREFIX": stage.PREFIX,
            "SIGNALBOX_HOME": folder, "DATABASE_URL": "", "CACHE_URL": "",
        }  # fmt: skip
        os.environ |= environment
        os.environ["PAGE_PROFILE_PLACES"] = json.dumps(_fill())
        if given.profile or given.save:
            subprocess.run(_command(given), cwd=ROOT, check=True, env=_environment(ROOT))
            return
        _report(*_compare(given))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_profile", description=__doc__)
    parser.add_argument("--against", type=Path, help="the folder of another checkout, as it was before")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each tree, in turns")
    parser.add_argument("--times", type=int, default=TIMES, help="answers of each page in one process")
    parser.add_argument("--only", nargs="+", metavar="PAGE", help=f"some of: {', '.join(PAGES)}")
    parser.add_argument("--user", default=USER, help="who asks: supervisor, operator, viewer, admin")
    parser.add_argument("--profile", metavar="PAGE", help="print the functions that take most of one page")
    parser.add_argument("--sort", default="tottime", help="of the profile")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write each page into this folder")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)  # in a process of its own
    return parser.parse_args()


# What stands there -------------------------------------------------------------------------------------------------


def _fill() -> dict[str, str]:
    """Fill server and database; return the ids that stand in addresses."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from dashboard.demo import logins, preparation
    from dashboard.demo.traffic import Traffic
    from machines.connections import get_engine
    from machines.services import Actor, bulks

    call_command("migrate", verbosity=0)
    preparation.machines()
    logins.prepare(Path(settings.SIGNALBOX["HOME"]))
    engine = get_engine()
    traffic = Traffic(engine, seed=1)
    traffic.populate()
    for _ in range(BEATS):
        traffic.beat()
    _work_off(engine)
    from django.contrib.auth import get_user_model

    admin = Actor(get_user_model().objects.get(username="admin"), "benchmark")
    bulk = bulks.start(admin, "activation", "suspend", reason="a look", filter={"state": "Waiting"})
    order = engine.find("delivery", limit=1).instances[0].id
    return {"bulk": bulk.id, "order": order, "error": str(_fill_rows())}


def _work_off(engine: Any) -> None:
    """Some jobs end, some die, some are held by workers."""
    from machines.engine import WorkerInfo

    now = int(time.time() * 1000)
    for n in range(3):
        engine.beat(
            WorkerInfo(
                f"box:{n}:aa", "box", n, ["new_device/todo"], in_hand=1, started=now - 7_200_000,
                seen=now + 3_600_000, version="1", concurrency=8, memory=84_200_000, done=12, failed=3,
            )
        )  # fmt: skip
    for number, job in enumerate(engine.take("new_device", "todo", "box:0:aa", count=30, lease=86_400_000)):
        if number % 3 == 0:
            engine.fail(job, f"the provider did not answer {number}", retry=False)


def _fill_rows() -> int:
    """Entries of audit and errors as they come in; return the id of an error."""
    from datetime import UTC, datetime, timedelta

    from machines.models import AuditEntry, FailedJob, FailureGroup, FailurePart

    now = datetime.now(UTC)
    AuditEntry.objects.bulk_create(
        AuditEntry(
            at=now - timedelta(seconds=n), actor=f"user{n % 40}", action=("fire", "force", "suspend")[n % 3],
            machine="activation", instance=f"ATV-{n % 50:03}:ABC", outcome="done" if n % 9 else "refused",
            source="page /x/",
        )
        for n in range(2000)
    )  # fmt: skip
    at, group = int(time.time() * 1000), None
    for n in range(25):
        group = FailureGroup.objects.create(
            key=str(n), handler="provision", kind="TimeoutError", shape=f"no answer from <number> {n}",
            first_seen=at - 60_000, last_seen=at,
        )  # fmt: skip
        FailurePart.objects.create(
            group=group, machine="new_device", count=n + 1, first_seen=at - 60_000, last_seen=at, versions=[1],
            queues=["todo"],
        )  # fmt: skip
        FailedJob.objects.create(group=group, machine="new_device", queue="todo", job=f"0-{n}", died=at)
    assert group is not None
    return int(group.pk)


# In a process of its own -------------------------------------------------------------------------------------------


def _work(given: argparse.Namespace) -> None:
    client, addresses = _client(given.user), _addresses(given.only)
    if given.profile:
        _profile(client, addresses[given.profile], given)
        return
    if given.save:
        given.save.mkdir(parents=True, exist_ok=True)
        for name, address in addresses.items():
            (given.save / f"{re.sub('[^a-z]+', '-', name)}.html").write_text(_stable(_get(client, address)))
        return
    print(json.dumps({name: _measure(client, address, given.times) for name, address in addresses.items()}))


def _client(name: str) -> Any:
    import gc

    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.get(username=name), "django.contrib.auth.backends.ModelBackend")
    client.get("/")
    gc.collect()
    gc.freeze()  # as the site does
    return client


def _addresses(only: list[str] | None) -> dict[str, str]:
    places = json.loads(os.environ["PAGE_PROFILE_PLACES"])
    return {name: address.format(**places) for name, address in PAGES.items() if not only or name in only}


def _get(client: Any, address: str) -> str:
    answer = client.get(address)
    if answer.status_code != 200:
        raise SystemExit(f"{address}: {answer.status_code}")
    return str(answer.content.decode())


def _measure(client: Any, address: str, times: int) -> dict[str, float]:
    from django.db import connection

    from benchmarks import wire

    for _ in range(WARM):
        _get(client, address)
    sql = 0

    def count(execute: Any, *args: Any) -> Any:
        nonlocal sql
        sql += 1
        return execute(*args)

    with wire.recorded() as traffic, connection.execute_wrapper(count):
        size = len(_get(client, address))
    best = float("inf")
    for _ in range(times):
        before = time.thread_time()
        client.get(address)
        best = min(best, time.thread_time() - before)
    return {"cpu": best * 1000, "sql": sql, "trips": len(traffic.trips), "bytes": size}


def _profile(client: Any, address: str, given: argparse.Namespace) -> None:
    for _ in range(WARM):
        _get(client, address)
    profile = cProfile.Profile()
    with profile:
        for _ in range(given.times):
            client.get(address)
    pstats.Stats(profile).sort_stats(given.sort).print_stats(70)


def _stable(text: str) -> str:
    for pattern, other in CHANGING:
        text = pattern.sub(other, text)
    return text


# The comparison ----------------------------------------------------------------------------------------------------


def _command(given: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-P", str(HERE), "--measure", "--times", str(given.times), "--user", given.user]
    command += ["--only", *given.only] if given.only else []
    command += ["--profile", given.profile, "--sort", given.sort] if given.profile else []
    return command + (["--save", str(given.save.resolve())] if given.save else [])


def _environment(tree: Path) -> Mapping[str, str]:
    return os.environ | {"PYTHONPATH": str(tree)}


def _compare(given: argparse.Namespace) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]] | None]:
    """Run both trees in turns; the smallest CPU time of each page counts."""
    trees = [ROOT] + ([given.against.resolve()] if given.against else [])
    found: list[dict[str, dict[str, float]]] = [{} for _ in trees]
    for _ in range(given.rounds):
        for tree, pages in zip(trees, found, strict=True):
            answer = subprocess.run(
                _command(given), cwd=tree, check=True, env=_environment(tree), stdout=subprocess.PIPE
            )
            for name, cost in json.loads(answer.stdout.splitlines()[-1]).items():
                pages[name] = cost | {"cpu": min(cost["cpu"], pages.get(name, cost)["cpu"])}
    return found[0], found[1] if given.against else None


def _report(now: dict[str, dict[str, float]], before: dict[str, dict[str, float]] | None) -> None:
    print("| page | CPU, ms | queries | round trips | kB |" + (" CPU before | ratio |" if before else ""))
    print("|---|---:|---:|---:|---:|" + ("---:|---:|" if before else ""))
    for name, cost in now.items():
        line = f"| {name} | {cost['cpu']:.1f} | {cost['sql']} | {cost['trips']} | {cost['bytes'] / 1000:.0f} |"
        if before:
            old = before[name]
            line = f"| {name} | {cost['cpu']:.1f} | {_change(old, cost, 'sql')} | {_change(old, cost, 'trips')} |"
            line += f" {cost['bytes'] / 1000:.0f} | {old['cpu']:.1f} | {cost['cpu'] / old['cpu']:.2f} |"
        print(line)
    print(f"\nLoad average at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}.")


def _change(before: dict[str, float], now: dict[str, float], what: str) -> str:
    return f"{now[what]}" if before[what] == now[what] else f"{before[what]} → {now[what]}"


if __name__ == "__main__":
    main()
