"""``manage.py library load``: puts the functions library onto the Redis of these settings."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.connections import get_engine
from machines.engine.errors import SignalboxError
from machines.management import library_command


class Command(BaseCommand):
    help = library_command.ABOUT
    requires_system_checks = []  # they need the library, and rights that the deployment account does not have

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=library_command.ACTIONS)

    def handle(self, **given: Any) -> None:
        try:
            library_command.load(get_engine(), self.stdout.write)
        except (SignalboxError, library_command.Failed) as error:
            raise CommandError(str(error)) from error
