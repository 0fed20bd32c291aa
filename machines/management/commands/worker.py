"""``python manage.py worker``: takes jobs from the queues and runs their handlers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from machines.conf import conf
from machines.conf.project import WORKER_TAG
from machines.connections import get_engine, get_pattern
from machines.duties import make_exclusive_duties, make_shared_duties
from machines.patterns import Locks
from machines.worker.command.command import add_arguments, list_arguments, read_names, read_options, run_worker
from machines.worker.command.command_line import list_restart_command
from machines.worker.duties.scheduler import Scheduler
from machines.worker.handler_checks import TAG as DEFINITIONS_TAG
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
            options = read_options(given, float(conf.LEASE_HELPER))
            registry = discover(read_names(given["handlers"]))
        except (ValueError, HandlerError) as error:
            raise CommandError(str(error)) from error
        if given["processes"] > 1:
            command = list_restart_command("worker", *list_arguments(options, given["handlers"]))
            if code := Supervisor(command, given["processes"], grace=options.grace).run(self.stdout):
                sys.exit(code)
            return
        stays = not (options.once or options.drain)  # one that ends with its work leaves exclusive duties to others
        duties = make_exclusive_duties(get_engine().at_once(), options) if stays else {}
        scheduler = Scheduler(get_pattern(Locks), duties, options.id)
        run_worker(
            get_engine(),
            registry,
            options,
            url=conf.REDIS_URL,
            scheduler=scheduler,
            duties=make_shared_duties(get_engine().at_once()) | scheduler.duties if stays else {},
            write=self.stdout.write,
        )
