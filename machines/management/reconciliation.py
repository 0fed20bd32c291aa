"""``machine reconcile NAME``: compares the rows of a bound model with the instances of its machine."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from machines.binding import registry
from machines.binding.reconcile import Reconcile, describe
from machines.connections import get_engine


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine that a model shows with a MachineField")
    parser.add_argument(
        "--dry-run", action="store_true", help="report and change nothing; exit with 1 for a difference"
    )


def run(out: Any, name: str, *, dry_run: bool) -> None:
    """Compare, mend and print the report. Exits with 1 where a difference is left."""
    field = registry.field_of_machine(name)
    if field is None:
        bound = ", ".join(sorted(one.machine for one in registry.list_fields())) or "none"
        raise CommandError(f"no model has a MachineField of {name!r}; bound machines: {bound}")
    report = Reconcile(get_engine(), field, dry_run=dry_run).run()
    out.write(f"{field.label} and the machine {name}:")
    for line in describe(report):
        out.write(line)
    for error in report.errors:
        out.write(f"          not created: {error}")
    if dry_run:
        out.write(f"{report.differences} differences; nothing was changed")
    else:
        out.write(f"{report.mended} of {report.differences} differences mended")
    if report.left:
        raise CommandError(f"{report.left} differences are left")
