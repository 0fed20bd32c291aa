"""``python -m benchmarks.attached``: what attaching costs a transition, and whether the mirror equals the table.

Transitions of one process, in rounds with and without the attachment: time and queries of each. Then transitions that
commit, transitions that are rolled back, and ``update()``; one reconcile, and every row is compared. SQLite, in a
temporary folder.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from statistics import median

from .stage import server

MODELS = "tests.attached.store"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transitions", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="signalbox-attached-") as folder, server(None) as url:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "DATABASE_URL": f"sqlite:///{folder}/store.sqlite3",
            "REDIS_URL": url,
        }
        import django
        from django.conf import settings

        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, MODELS]
        django.setup()
        from django.core.management import call_command

        call_command("migrate", run_syncdb=True, verbosity=0)
        _measure(given.transitions // 10)
        _compare(given.transitions)


def _measure(count: int) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from machines.attached import attach, detach
    from tests.attached.store.models import Purchase

    plain, mirrored, queries = [], [], {}
    for _ in range(count // 100):
        rows = [Purchase.objects.create() for _ in range(100)]
        plain.append(_move(rows))
        with CaptureQueriesContext(connection) as seen:
            _move(rows[:1])
        queries["plain"] = len(seen)
        made = attach(Purchase, "state")
        rows = [Purchase.objects.create() for _ in range(100)]
        mirrored.append(_move(rows))
        with CaptureQueriesContext(connection) as seen:
            _move(rows[:1])
        queries["attached"] = len(seen)
        detach(made)
    more = [(b - a) * 10 for a, b in zip(plain, mirrored, strict=True)]  # ms of one of 100 transitions
    print(f"a transition with its save: {median(plain) * 10:.3f} ms, attached {median(mirrored) * 10:.3f} ms;"
          f" more: {median(more):.3f} ms, {queries['attached'] - queries['plain']} queries")  # fmt: skip


def _move(rows) -> float:
    begun = time.perf_counter()
    for row in rows:
        row.cancel() if row.state != "canceled" else row.reopen("new")
        row.save()
    return time.perf_counter() - begun


def _compare(count: int) -> None:
    from django.db import transaction

    from machines.attached import attach
    from machines.attached.reconcile import Reconcile
    from machines.connections import get_engine
    from tests.attached.store.models import Purchase

    made, pick = attach(Purchase, "state"), random.Random(1)
    rows = [Purchase.objects.create() for _ in range(500)]
    for _ in range(count):
        row = pick.choice(rows)
        fate = pick.random()
        try:
            with transaction.atomic():
                row.cancel() if row.state != "canceled" else row.reopen(pick.choice(["new", "shipped"]))
                row.save()
                if fate < 0.2:
                    raise InterruptedError
        except InterruptedError:
            row.refresh_from_db()
        if fate > 0.95:
            Purchase.objects.filter(pk=row.pk).update(state="confirmed")
            row.refresh_from_db()
    report = Reconcile(get_engine(), made).run()
    table = {str(pk): state for pk, state in Purchase.objects.values_list("pk", "state")}
    differ = sum(get_engine().get(made.machine, id).state != state for id, state in table.items())
    print(f"{count} transitions, a fifth rolled back, a twentieth followed by update(): reconcile mended"
          f" {report.mended}, and {differ} of {len(table)} rows differ from their instance")  # fmt: skip


if __name__ == "__main__":
    main()
