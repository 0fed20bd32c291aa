"""``python manage.py worker``: takes jobs from the queues and runs their handlers."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from machines.catalog.definition_checks import TAG as DEFINITIONS_TAG
from machines.conf import conf
from machines.conf.database import keep_files_open
from machines.conf.project import WORKER_TAG
from machines.connections import get_engine, get_pattern
from machines.duties import make_exclusive_duties, make_shared_duties, write_columns
from machines.patterns import Locks
from machines.signals import send_failure
from machines.worker.command.command import add_arguments, list_arguments, read_names, read_options, run_worker
from machines.worker.command.command_line import list_restart_command
from machines.worker.duties.exclusive_duties import Duty, Scheduler
from machines.worker.options import Options
from machines.worker.registry import HandlerError, discover
from machines.worker.supervisor import Supervisor


class Command(BaseCommand):
    help = "Takes jobs from the machines' queues and runs their handlers (each installed app's handlers.py)."
    # Not those of addresses and templates, which load every page: a fifth of a worker's memory, and half of its start.
    requires_system_checks = [WORKER_TAG, DEFINITIONS_TAG, Tags.caches, Tags.compatibility, Tags.models]

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, **given: Any) -> None:
        try:
            options = read_options(given, float(conf.LEASE_HELPER), conf.JOB_LOGS)
            registry = discover(read_names(given["handlers"]))
        except (ValueError, HandlerError) as error:
            raise CommandError(str(error)) from error
        if given["processes"] > 1:
            command = list_restart_command("worker", *list_arguments(options, given["handlers"]))
            if code := Supervisor(command, given["processes"], grace=options.grace).run(self.stdout):
                sys.exit(code)
            return
        keep_files_open()
        scheduler = _scheduler(options)
        run_worker(
            get_engine(),
            registry,
            options,
            url=conf.REDIS_URL,
            scheduler=scheduler,
            duties=_duties(options, scheduler),
            write=self.stdout.write,
            on_failure=send_failure,
        )
        if options.once or options.drain:  # it has no duties; a script that goes on afterwards reads rows
            write_columns(get_engine())


def _scheduler(options: Options) -> Scheduler:
    """Make the scheduler of exclusive duties. A worker that ends with its work leaves them to workers that stay."""
    duties = {} if options.once or options.drain else make_exclusive_duties(get_engine().at_once(), options)
    return Scheduler(get_pattern(Locks), duties, options.id)


def _duties(options: Options, scheduler: Scheduler) -> dict[str, Duty]:
    """Return the worker's duties beside jobs and timers."""
    if options.once or options.drain:
        return {}
    return make_shared_duties(get_engine().at_once()) | scheduler.duties
