"""``machine export NAME FILE`` and ``machine import FILE``: machines with all their instances, with progress."""

from __future__ import annotations

import contextlib
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.catalog.publishing import adopt
from machines.connections import get_engine
from machines.engine.transfer import Export, Import
from machines.services import Actor

GZIP = b"\x1f\x8b"
EVERY = 0.5  # seconds between two lines of progress
TOLD = 20  # problems that are printed
INTERRUPTED = 130  # the exit code of a command that Ctrl-C has stopped


def add_export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE", nargs="?", help="write the machine with all its instances there")
    _add_progress(parser)


def add_import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="of a machine that is new here; default: as many as it had"
    )
    _add_progress(parser)


def _add_progress(parser: ArgumentParser) -> None:
    parser.add_argument("--progress", action="store_true", help="show progress also where no terminal is")


def is_transfer(file: str) -> bool:
    """Tell whether a file is an export of a machine with its instances: definitions are never compressed."""
    try:
        with Path(file).open("rb") as opened:
            return opened.read(2) == GZIP
    except OSError:
        return False


def export_machine(command: BaseCommand, name: str, path: Path, *, progress: bool, **_: Any) -> None:
    """Write a machine with all its instances to a file."""
    engine = get_engine()
    export = Export(engine.client, engine.keys, name, path)
    with Actor.console().records("machine.export", machine=name, target=path.name) as deed, _interruptible(command):
        export.run(Meter(command, "exported", progress))
        deed.note(instances=export.instances)
    goes_on = f", {export.resumed} of them by an earlier run" if export.resumed else ""
    command.stdout.write(
        f"{path}: {name} with {export.instances} instances{goes_on}, {export.jobs} jobs without an instance,"
        f" {path.stat().st_size} bytes"
    )


def import_machine(
    command: BaseCommand, path: Path, *, partitions: int | None, progress: bool, id: str, publish: bool, **_: Any
) -> None:
    """Read a machine with all its instances from a file. Exits with 1 when a record was not written."""
    if id or publish:
        raise CommandError("--id and --publish are for definitions; this file holds a machine with its instances")
    if partitions is not None and not 1 <= partitions <= 65536:
        raise CommandError("--partitions is 1 to 65536")
    engine = get_engine()
    with Actor.console().records("machine.import", machine="", target=path.name) as deed, _interruptible(command):
        report = Import(engine.client, engine.keys, path, partitions=partitions).run(
            Meter(command, "imported", progress)
        )
        deed.name(machine=report.machine)
        deed.note(written=report.written, there=report.there, refused=report.others)
        adopt(report.machine)
    for problem in report.problems[:TOLD]:
        command.stderr.write(problem)
    command.stdout.write(
        f"{report.machine}: {report.written} records written, {report.there} were there,"
        f" {len(report.versions)} versions published"
    )
    if report.others:
        raise CommandError(f"{report.others} records were not written; the first {TOLD} are named above")


class Meter:
    """Prints how far a long command is, to standard error: on a terminal, or when asked for."""

    def __init__(self, command: BaseCommand, verb: str, wanted: bool) -> None:
        self._command = command
        self._verb = verb
        self._shown = wanted or sys.stderr.isatty()
        self._end = "\r" if sys.stderr.isatty() else "\n"
        self._last = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._shown or (done < total and now - self._last < EVERY):
            return
        self._last = now
        share = f"{100 * done / total:.0f} %" if total else ""
        ending = "\n" if done >= total else self._end
        self._command.stderr.write(f"{self._verb} {done} of {total} {share}   ", ending=ending)
        self._command.stderr.flush()


@contextlib.contextmanager
def _interruptible(command: BaseCommand) -> Iterator[None]:
    """End quietly after Ctrl-C: what was done stays done, and the same command goes on from there."""
    try:
        yield
    except KeyboardInterrupt:
        command.stderr.write("\nstopped; run the same command again to go on")
        sys.exit(INTERRUPTED)
    except OSError as error:
        raise CommandError(f"{error.filename or ''}: {error.strerror or error}") from error
