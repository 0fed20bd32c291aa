"""``python manage.py worker``: takes jobs from the queues and runs their handlers."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

import machines
from machines.connections import get_engine
from machines.engine import limits
from machines.worker.discovery import discover
from machines.worker.launcher import Launcher
from machines.worker.options import MAX_CONCURRENCY, Options
from machines.worker.registry import HandlerError


class Command(BaseCommand):
    help = "Takes jobs from the machines' queues and runs their handlers (each installed app's handlers.py)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queues", default="", metavar="A,B", help="serve these queues only (default: all)")
        parser.add_argument(
            "--concurrency", type=int, default=4, metavar="N", help=f"jobs at the same time, 1 to {MAX_CONCURRENCY}"
        )
        parser.add_argument(
            "--grace", type=float, default=20.0, metavar="S", help="seconds jobs in hand may take after a TERM"
        )
        parser.add_argument("--drain", action="store_true", help="stop when the queues are empty")
        parser.add_argument("--once", action="store_true", help="stop after one batch")

    def handle(self, **given: Any) -> None:
        options = self._options(given)
        try:
            registry = discover()
        except HandlerError as error:
            raise CommandError(str(error)) from error
        launcher = Launcher(get_engine(), registry, options, version=machines.__version__)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: launcher.stop())
        handlers = ", ".join(registry) or "none: it fires timers, delivers messages and sweeps"
        self.stdout.write(f"worker {options.id}: {options.concurrency} at a time, handlers {handlers}")
        launcher.run()
        self.stdout.write(f"worker {options.id}: stopped, {launcher.summary()}")

    def _options(self, given: dict[str, Any]) -> Options:
        queues = tuple(name.strip() for name in given["queues"].split(",") if name.strip())
        for queue in queues:
            if (why := limits.check_queue_name(queue)) is not None:
                raise CommandError(f"--queues: the name {queue!r} {why}")
        try:
            return Options(
                queues=queues,
                concurrency=given["concurrency"],
                grace=given["grace"],
                drain=given["drain"],
                once=given["once"],
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
