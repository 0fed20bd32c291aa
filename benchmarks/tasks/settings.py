"""Settings of a process that enqueues or runs tasks: BENCH_BACKEND says by which backend."""

from __future__ import annotations

import os

NAME = os.environ["BENCH_BACKEND"]
URL = os.environ["BENCH_URL"]

SECRET_KEY = "benchmark"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["BENCH_DATABASE"],
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL",
        },
    }
}
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
LOGGING["loggers"] = {name: {"level": "ERROR"} for name in ("django.tasks", "django_vtasks", "django_tasks_redis")}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "benchmarks.tasks"]
INSTALLED_APPS += {
    "signalbox": ["guardian", "machines"],
    "redis": ["django_tasks_redis"],
    "db": ["django_tasks_db"],
    "vtasks": ["django_vtasks"],
}[NAME]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
SIGNALBOX = {"REDIS_URL": URL, "PREFIX": "bench:"}
TASKS = {
    "default": {
        "signalbox": {"BACKEND": "machines.tasks.SignalboxBackend"},
        "redis": {"BACKEND": "django_tasks_redis.RedisTaskBackend", "OPTIONS": {"REDIS_URL": URL}},
        "db": {"BACKEND": "django_tasks_db.DatabaseBackend"},
        "vtasks": {
            "BACKEND": "django_vtasks.backends.valkey.ValkeyTaskBackend",
            "OPTIONS": {"BROKER_URL": URL},
        },
    }[NAME]
}
VTASKS_RUN_SCHEDULER = False
