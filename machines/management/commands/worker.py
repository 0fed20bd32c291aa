"""``python manage.py worker``: takes jobs from the queues and runs their handlers."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

import machines
from machines.conf import conf
from machines.connections import get_engine, get_pattern
from machines.engine import arguments, errors, limits
from machines.management.maintenance import make_exclusive_duties, make_shared_duties
from machines.patterns import Locks
from machines.worker.launcher import Launcher
from machines.worker.maintenance.periodic import Duty
from machines.worker.maintenance.scheduler import Scheduler
from machines.worker.options import MAX_CONCURRENCY, MAX_PREFETCH, MAX_PROCESSES, Options
from machines.worker.registry import HandlerError, discover
from machines.worker.supervisor import Supervisor


class Command(BaseCommand):
    help = "Takes jobs from the machines' queues and runs their handlers (each installed app's handlers.py)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queues", default="", metavar="A,B", help="queues to serve, each as queue or machine/queue (default: all)"
        )
        parser.add_argument(
            "--concurrency", type=int, default=4, metavar="N", help=f"concurrent jobs, 1 to {MAX_CONCURRENCY}"
        )
        parser.add_argument(
            "--prefetch",
            type=int,
            metavar="N",
            help=f"jobs prefetched beyond that, 0 to {MAX_PREFETCH} (default: as many as finish in 50 ms)",
        )
        parser.add_argument(
            "--processes", type=int, default=1, metavar="N", help=f"worker processes, 1 to {MAX_PROCESSES}"
        )
        parser.add_argument(
            "--grace", type=float, default=20.0, metavar="S", help="seconds running jobs may take after SIGTERM"
        )
        parser.add_argument("--drain", action="store_true", help="stop when the queues are empty")
        parser.add_argument("--once", action="store_true", help="stop after one batch")

    def handle(self, **given: Any) -> None:
        options = self._options(given)
        try:
            registry = discover()
        except HandlerError as error:
            raise CommandError(str(error)) from error
        if given["processes"] > 1:
            command = [sys.executable, sys.argv[0], "worker", *words(options)]
            if code := Supervisor(command, given["processes"], grace=options.grace).run(self.stdout):
                sys.exit(code)
            return
        scheduler = _scheduler(options)
        duties = _duties(options, scheduler)
        launcher = Launcher(
            get_engine(), registry, options, version=machines.__version__, url=conf.REDIS_URL, duties=duties
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: launcher.stop())
        for number in (signal.SIGUSR1, signal.SIGTSTP):
            signal.signal(number, lambda *_: launcher.quiet())
        handlers = ", ".join(registry) or "none: timers, messages and expired leases only"
        self.stdout.write(f"worker {options.id}: {options.concurrency} at a time, handlers {handlers}")
        launcher.run()
        scheduler.leave()
        self.stdout.write(f"worker {options.id}: stopped, {launcher.summary()}")

    def _options(self, given: dict[str, Any]) -> Options:
        queues = tuple(name.strip() for name in given["queues"].split(",") if name.strip())
        if given["queues"].strip() and not queues:
            raise CommandError(f"--queues {given['queues']!r} names no queue; leave it out to serve all")
        for queue in queues:
            if (why := _misnamed(queue)) is not None:
                raise CommandError(f"--queues: the name {queue!r} {why}")
        if not 1 <= given["processes"] <= MAX_PROCESSES:
            raise CommandError(f"processes must be 1 to {MAX_PROCESSES}, not {given['processes']}")
        try:
            return Options(
                queues=queues,
                concurrency=given["concurrency"],
                prefetch=given["prefetch"],
                grace=given["grace"],
                helper_limit=float(conf.LEASE_HELPER),
                drain=given["drain"],
                once=given["once"],
            )
        except ValueError as error:
            raise CommandError(str(error)) from error


def _scheduler(options: Options) -> Scheduler:
    """Makes the scheduler of exclusive duties. A worker that ends with its work leaves them to workers that stay."""
    duties = {} if options.once or options.drain else make_exclusive_duties(get_engine(), options)
    return Scheduler(get_pattern(Locks), duties, options.id)


def _duties(options: Options, scheduler: Scheduler) -> dict[str, Duty]:
    """What it does beside jobs and timers."""
    if options.once or options.drain:
        return {}
    return make_shared_duties(get_engine()) | scheduler.duties


def _misnamed(name: str) -> str | None:
    """Why this is neither a queue nor machine/queue; None when it is."""
    machine, slash, queue = name.rpartition("/")
    if slash:
        try:
            arguments.check_machine(machine)
        except errors.BadInput as error:
            return f"begins with no machine's name: {error}"
    return limits.check_queue_name(queue)


def words(options: Options) -> list[str]:
    """The same options as words of a command line."""
    found = ["--concurrency", str(options.concurrency), "--grace", str(options.grace)]
    if options.queues:
        found += ["--queues", ",".join(options.queues)]
    if options.prefetch is not None:
        found += ["--prefetch", str(options.prefetch)]
    return found + [flag for flag, given in (("--drain", options.drain), ("--once", options.once)) if given]
