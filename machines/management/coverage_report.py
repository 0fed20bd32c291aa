"""The part of ``machine test`` that reports coverage: prints it, adds what pytest wrote, stores it for the room."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from machines.catalog.coverage import measurement, storage
from machines.catalog.coverage.measurement import Collector, Coverage
from machines.engine.definitions import CompiledDefinition

MOST_LISTED = 20  # parts of a machine that are not covered


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--coverage", action="store_true", help="print which transitions and guards were covered")
    parser.add_argument("--fail-under", type=float, metavar="PERCENT", help="with --coverage: exit with 1 for less")
    parser.add_argument("--add", action="append", default=[], metavar="FILE", help="also count what pytest wrote there")
    parser.add_argument(
        "--record", action="store_true", help="store the coverage for the diagrams of these definitions"
    )


def check_options(coverage: bool, fail_under: float | None, add: list[str], record: bool) -> None:
    """Raise CommandError for options that need another one."""
    if not coverage and (fail_under is not None or add or record):
        raise CommandError("--fail-under, --add and --record go with --coverage")
    if fail_under is not None and not 0 <= fail_under <= 100:
        raise CommandError("--fail-under is a percentage from 0 to 100")


def read_files(collector: Collector, files: list[str]) -> None:
    """Add the coverage that pytest wrote. Raises CommandError."""
    for name in files:
        try:
            collector.add(measurement.read(Path(name).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise CommandError(f"{name} cannot be read: {error}") from error


def report(
    command: BaseCommand, collector: Collector, definitions: Mapping[str, CompiledDefinition], fail_under: float | None
) -> None:
    """Print the coverage of definitions. Raises CommandError where it is less than is asked for."""
    everything = []
    for machine, compiled in sorted(definitions.items()):
        found = collector.found.get((machine, compiled.digest), Coverage(machine, compiled.digest))
        parts = measurement.list_parts(compiled.outline, found)
        everything += parts
        missing = [part for part in parts if not part.covered]
        covered = f"{len(parts) - len(missing)} of {len(parts)} transitions and false guards"
        command.stdout.write(f"{machine}: {measurement.percent(parts):.0f} %, {covered}")
        for part in missing[:MOST_LISTED]:
            command.stdout.write(f"    not covered: {part}")
        if len(missing) > MOST_LISTED:
            command.stdout.write(f"    and {len(missing) - MOST_LISTED} more")
    total = measurement.percent(everything)
    command.stdout.write(f"coverage: {total:.1f} %")
    for machine, digest in sorted(collector.found):
        if machine in definitions and definitions[machine].digest != digest:
            command.stdout.write(f"{machine}: tests of another definition ({digest}) were not counted")
    if fail_under is not None and total < fail_under:
        raise CommandError(f"the coverage is {total:.1f} %, less than {fail_under:g} %")


def store(command: BaseCommand, collector: Collector, definitions: Mapping[str, CompiledDefinition]) -> None:
    """Store the coverage of definitions: a version with such a definition shows it, published before or later."""
    current = {(machine, compiled.digest) for machine, compiled in definitions.items()}
    chosen = [one for key, one in collector.found.items() if key in current]
    for row in storage.record(chosen, f"{getpass.getuser()} (machine test)"):
        command.stdout.write(f"{row.machine}: coverage recorded for definition {row.digest}")
