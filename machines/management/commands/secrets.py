"""``python manage.py secrets rotate``: encrypts stored secrets under the current ``SECRET_KEY``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.encryption.ciphers import WORDS
from machines.encryption.rotation import rotate_all
from machines.management.verbs import add_verb, add_verbs


class Command(BaseCommand):
    help = "Encrypts secrets, second factors and pending approvals under the current SECRET_KEY."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_verb(self, add_verbs(parser), "rotate", "encrypt everything under the current key; safe to repeat")

    def handle(self, *args: Any, **given: Any) -> None:
        reports = list(rotate_all())
        for report in reports:
            again = f", {report.changed} changed meanwhile: run this again" if report.changed else ""
            self.stdout.write(f"{report.name}: {report.renewed} encrypted, {report.current} up to date{again}")
        if lost := [f"{report.name} of {pk}" for report in reports for pk in report.unreadable]:
            raise CommandError("\n".join([f"{len(lost)} values stay as they are; each {WORDS}:", *lost]))
