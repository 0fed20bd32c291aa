"""``python manage.py secrets rotate``: encrypts stored secrets under the current ``SECRET_KEY``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.bulks import BULK
from machines.bulks.store import Store
from machines.connections import get_engine
from machines.encryption.ciphers import WORDS
from machines.encryption.rotation import Rotation, rotate_all
from machines.engine import Engine
from machines.management.verbs import add_verb, add_verbs


class Command(BaseCommand):
    help = "Encrypts secrets, second factors, and arguments of approvals and bulk actions under the current SECRET_KEY."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_verb(self, add_verbs(parser), "rotate", "encrypt everything under the current key; safe to repeat")

    def handle(self, *args: Any, **given: Any) -> None:
        reports = [*rotate_all(), rotate_orders(get_engine())]
        for report in reports:
            again = f", {report.changed} changed meanwhile: run this again" if report.changed else ""
            self.stdout.write(f"{report.name}: {report.renewed} encrypted, {report.current} up to date{again}")
        if lost := [f"{report.name} of {pk}" for report in reports for pk in report.unreadable]:
            raise CommandError("\n".join([f"{len(lost)} values stay as they are; each {WORDS}:", *lost]))


def rotate_orders(engine: Engine) -> Rotation:
    """Encrypt the arguments of all bulk actions under the current key. Raises EngineUnavailable."""
    report, cursor = Rotation("arguments of bulk actions"), None
    while BULK in engine.machines():
        page = engine.find(BULK, limit=100, cursor=cursor, partial=False)
        for bulk in page.instances:
            is_new = Store(engine, bulk.id).renew_order()
            if is_new is None:
                report.unreadable.append(bulk.id)
            report.renewed += is_new is True
            report.current += is_new is False
        if (cursor := page.cursor) is None:
            break
    return report
