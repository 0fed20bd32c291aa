"""Publishes the machine of tasks with the first task. A version that an operator published stays."""

from __future__ import annotations

from machines.catalog import builtin_machines
from machines.engine import Engine

MACHINE = "django_tasks"


def publish(engine: Engine) -> None:
    builtin_machines.publish(engine, MACHINE)
