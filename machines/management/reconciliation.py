"""``machine reconcile NAME``: compares the rows of a bound, or an attached, model with the instances of its machine."""

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError

from machines.connections import get_engine
from machines.integrations.attached import Attachment
from machines.integrations.attached import registry as attachments
from machines.integrations.attached.reconcile import Reconcile as ReconcileMirror
from machines.integrations.attached.reconcile import Report as MirrorReport
from machines.integrations.binding import registry
from machines.integrations.binding.reconcile import DryRun, Reconcile, Report


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="a machine that a model shows with a MachineField, or that mirrors one"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="report and change nothing; exit with 1 for a difference"
    )
    parser.add_argument(
        "--create-missing",
        action="store_true",
        help="create instances, in the initial state, for rows whose instance is gone and whose state is not final",
    )


def run(stdout: Any, name: str, *, dry_run: bool, create_missing: bool = False) -> None:
    """Compare, mend and print the report. Exits with 1 where a difference is left."""
    if (attachment := attachments.find(name)) is not None:
        _run_attached(stdout, attachment, dry_run=dry_run, create_missing=create_missing)
        return
    field = registry.field_of_machine(name)
    if field is None:
        bound = ", ".join(sorted(one.machine for one in registry.list_fields())) or "none"
        mirrors = ", ".join(sorted(one.machine for one in attachments.list_attached())) or "none"
        raise CommandError(
            f"no model has a MachineField of {name!r}; bound machines: {bound}; machines of attached models: {mirrors}"
        )
    report = Reconcile(get_engine(), field, dry_run=dry_run, create_missing=create_missing).run()
    stdout.write(f"{field.label} and the machine {name}:")
    more = [f"          not created: {error}" for error in report.errors]
    _print(stdout, report, [*more, describe_lost(report, create_missing)] if report.lost else more, dry_run)


def describe_lost(report: Report, create_missing: bool) -> str:
    """Say what happens to rows whose instance is missing although their state is not final."""
    if create_missing and not isinstance(report, DryRun):
        return (
            f"{report.recreated} of {report.lost} instances that were gone were created, in the initial state,"
            f" and their rows say so"
        )
    return (
        f"{report.lost} rows have lost their instance though their state is not final; --create-missing creates"
        f" instances for them, in the initial state"
    )


def _run_attached(output: Any, attachment: Attachment, *, dry_run: bool, create_missing: bool) -> None:
    """Reconcile where rows decide: instances are created, moved and removed to match the table."""
    if create_missing:
        raise CommandError(f"{attachment.label} decides by itself, so instances that are missing are always created")
    report = ReconcileMirror(get_engine(), attachment, dry_run=dry_run).run()
    output.write(f"{attachment.label} and its mirror {attachment.machine}:")
    _print(output, report, (), dry_run)


def _print(output: Any, report: Report | MirrorReport, more: Iterable[str], dry_run: bool) -> None:
    for line in (*report.lines(), *more):
        output.write(line)
    if dry_run:
        output.write(f"{report.differences} differences; nothing was changed")
    else:
        output.write(f"{report.mended} of {report.differences} differences mended")
    if report.left:
        raise CommandError(f"{report.left} differences are left")
