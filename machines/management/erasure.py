"""``machine erase`` erases one person's data, and shows that nothing is left."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError, OutputWrapper

from machines.connections import get_engine
from machines.people import rules
from machines.people.actor import Actor
from machines.retention.erasure import ErasureReport, erase, summarize

SHOWN = 20  # places that are listed as left


def add_erase_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="MACHINE[/ID]", help="an instance; with --where a machine")
    parser.add_argument("--where", metavar="FIELD=VALUE", help="all instances whose data field has or had this value")
    parser.add_argument("--reason", required=True, help="why; it stands in the audit, so name nobody")


def erase_data(stdout: OutputWrapper, target: str, where: str | None, reason: str) -> None:
    """Erase, print the report, and raise CommandError where something is left."""
    machine, separator, id = target.partition("/")
    field, equals, value = (where or "").partition("=")
    if bool(separator) == (where is not None):
        raise CommandError("name an instance, machine/id, or a machine with --where field=value")
    if where is not None and not (field and equals):
        raise CommandError("--where takes a data field and its value: --where email=eve@example.org")
    actor = Actor.console()
    with actor.records("machine.erase", machine=machine, target=field, reason=reason) as entry:
        rules.demand_open(machine)
        found = erase(
            get_engine(), machine, id=id, where=(field, value) if where else None, actor=actor.name, reason=reason
        )
        entry.note(**summarize(found))
    _print_report(stdout, found)
    if found.left:
        raise CommandError(
            f"{len(found.left)} places still hold a value; erase those instances as well, and run it again"
        )


def _print_report(output: OutputWrapper, found: ErasureReport) -> None:
    output.write(f"instances: {len(found.instances)}")
    for store, count in sorted(found.removed.items()):
        if count:
            output.write(f"{store}: {count}")
    for place in found.left[:SHOWN]:
        output.write(f"left: {place}")
    if not found.left:
        output.write("a second search of Redis, the database and the archive found nothing")
