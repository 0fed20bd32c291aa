"""``python manage.py secrets rotate``: encrypts stored secrets under the current ``SECRET_KEY``."""

from argparse import ArgumentParser
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.conf.encryption.ciphers import WORDS
from machines.conf.encryption.rotation import Rotation, rotate_all
from machines.connections import get_engine
from machines.engine import Conflict, Engine, EngineUnavailable, Instance, SignalboxError, UnknownInstance
from machines.engine.search.page_merge import find_pages
from machines.instances.bulks import BULK
from machines.instances.bulks.store import Store
from machines.management.verbs import add_verb, add_verbs


class Command(BaseCommand):
    help = (
        "Encrypts secrets, second factors, arguments, and searchable fields of instances under the current SECRET_KEY."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_verb(self, add_verbs(parser), "rotate", "encrypt everything under the current key; safe to repeat")

    def handle(self, *args: Any, **given: Any) -> None:
        engine, lost = get_engine(), list[str]()
        for report in chain(rotate_all(), map(rotate_orders, [engine]), rotate_searchable(engine)):
            again = f", {report.changed} changed meanwhile: run this again" if report.changed else ""
            self.stdout.write(f"{report.name}: {report.renewed} encrypted, {report.current} up to date{again}")
            lost += [f"{report.name} of {pk}: {why}" for pk, why in report.kept.items()]
        if lost:
            raise CommandError("\n".join([f"{len(lost)} values stay as they are:", *lost]))


def rotate_orders(engine: Engine) -> Rotation:
    """Encrypt the arguments of all bulk actions under the current key. Raises EngineUnavailable."""
    report = Rotation("arguments of bulk actions")
    pages = find_pages(engine, BULK, limit=100, partial=False) if BULK in engine.machines() else ()
    for bulk in chain.from_iterable(pages):
        is_new = Store(engine, bulk.id).renew_order()
        if is_new is None:
            report.kept[bulk.id] = WORDS
        report.renewed += is_new is True
        report.current += is_new is False
    return report


def rotate_searchable(engine: Engine) -> Iterator[Rotation]:
    """Encrypt the searchable fields of all instances in Redis under the current key of the codec, so that they are
    found again: a repair of each. Raises EngineUnavailable."""
    for machine in engine.machines():
        names = [name for name, mark in engine.sensitive(machine).encrypted.items() if mark.searchable]
        if names:
            report = Rotation(f"searchable fields of {machine}")
            for instance in chain.from_iterable(find_pages(engine, machine, limit=100, partial=False)):
                _renew_fields(engine, instance, names, report)
            yield report


def _renew_fields(engine: Engine, instance: Instance, names: Collection[str], report: Rotation) -> None:
    machine, id = instance.machine, instance.id
    held = {name: instance.data[name] for name in names if instance.data.get(name) is not None}
    try:
        engine.decrypt(held)  # what no key decrypts would be encrypted once more
        changes = {name: value for name, value in engine.encrypt(machine, held).items() if value != held[name]}
        if changes:
            why = "encrypted under the current key"
            engine.edit(machine, id, changes, actor="secrets rotate", reason=why, expect=instance.revision)
    except (Conflict, UnknownInstance):
        report.changed += 1
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        report.kept[id] = str(error)
    else:
        report.renewed += bool(changes)
        report.current += not changes
