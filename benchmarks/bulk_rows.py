"""How long a worker takes for the instances of rows that ``bulk_create`` made: ``python -m benchmarks.bulk_rows``.

A project of its own with SQLite, a server without persistence, and one ``manage.py worker`` with its defaults.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import stage

SETTINGS = """
from pathlib import Path
SECRET_KEY = "of-a-benchmark"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "guardian", "machines", "shop"]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "guardian.backends.ObjectPermissionBackend"]
ANONYMOUS_USER_NAME = None
USE_TZ = True
DATABASES = {"default": {
    "ENGINE": "django.db.backends.sqlite3", "NAME": Path(__file__).parent / "db.sqlite3",
    "OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"},
}}
"""
MODELS = """
from django.db import models
from machines.fields import MachineField

class Order(models.Model):
    total = models.IntegerField()
    status = MachineField("order", follows=["total"])
"""
ORDER = """
id: order
initial: new
context: {total: 0}
states:
  new: {on: {pay: {target: paid, guard: event.amount >= total}}}
  paid: {}
"""
BEGIN = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
call_command("machine", "sync", verbosity=0)
from shop.models import Order
Order.objects.bulk_create([Order(total=n) for n in range({rows})], batch_size=1000)
"""
WATCH = """
import time, django; django.setup()
from shop.models import Order
while Order.objects.filter(status_revision=0).exists(): time.sleep(0.2)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=50_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="signalbox-bench-") as name, stage.server(None) as url:
        folder = Path(name)
        files = {"settings.py": f"{SETTINGS}SIGNALBOX = {{'REDIS_URL': {url!r}}}\n", "shop/__init__.py": ""}
        files |= {"shop/models.py": MODELS, "shop/statemachines/order.yaml": ORDER}
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        environment = {
            **os.environ,
            "PYTHONPATH": f"{stage.HERE.parent}:{folder}",
            "DJANGO_SETTINGS_MODULE": "settings",
        }

        def run(*arguments: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen([sys.executable, *arguments], cwd=folder, env=environment)

        begin = time.monotonic()
        assert run("-c", BEGIN.format(rows=rows)).wait() == 0
        made = time.monotonic()
        worker = run("-m", "django", "worker")
        assert run("-c", WATCH).wait() == 0
        took = time.monotonic() - made
        worker.terminate()
        used = os.wait4(worker.pid, 0)[2]
    print(f"{rows} rows made in {made - begin:.1f} s; their instances {took:.1f} s after the worker's start,")
    print(f"{rows / took:.0f} a second, with {used.ru_utime + used.ru_stime:.1f} s of its CPU;", end=" ")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
