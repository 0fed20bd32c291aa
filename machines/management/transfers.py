"""``machine export NAME FILE``, ``machine import FILE``, ``machine repartition NAME``: long commands with progress;
and ``machine erase``."""

import contextlib
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from machines.catalog import rules
from machines.catalog.builtin_machines import NAMES as BUILT_IN
from machines.catalog.builtin_machines import demand_unreserved
from machines.catalog.publishing import adopt
from machines.catalog.rules import prepare_change
from machines.connections import get_engine
from machines.engine.definitions import outline
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import
from machines.engine.transfer.repartitioning import MAX_WAIT, Repartition
from machines.people.actor import Actor
from machines.retention.erasure import ErasureReport, erase, summarize

GZIP = b"\x1f\x8b"
EVERY = 0.5  # seconds between two lines of progress
MAX_PRINTED = 20  # problems that are printed
INTERRUPTED = 130  # the exit code of a command that Ctrl-C has stopped
SHOWN = 20  # places that are listed as left


def add_export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE", nargs="?", help="write the machine with all its instances there")
    _add_progress(parser)


def add_import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="of a machine that is new here; default: as many as it had"
    )
    _add_progress(parser)


def add_repartition_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("--to", type=int, required=True, metavar="N", help="partitions, a multiple of those it has")
    parser.add_argument(
        "--max-wait",
        type=float,
        default=MAX_WAIT,
        metavar="SECONDS",
        help=f"after which instances are moved whose jobs a worker still holds; default: {MAX_WAIT:.0f}",
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


def export_machine(command: BaseCommand, name: str, path: Path, *, progress: bool) -> None:
    """Write a machine with all its instances to a file."""
    engine = get_engine()
    export = Export(engine.client, engine.keys, name, path)
    with Actor.console().records("machine.export", machine=name, target=path.name) as entry, _interruptible(command):
        export.run(Meter(command, "exported", progress))
        entry.note(instances=export.instances)
    command.stdout.write(
        f"{path}: {name} with {export.instances} instances, {export.jobs} jobs without an instance,"
        f" {path.stat().st_size} bytes"
    )


def import_machine(
    command: BaseCommand, path: Path, *, partitions: int | None, progress: bool, id: str, publish: bool
) -> None:
    """Read a machine with all its instances from a file. Exits with 1 when a record was not written."""
    if id or publish:
        raise CommandError("--id and --publish are for definitions; this file holds a machine with its instances")
    if partitions is not None and not 1 <= partitions <= 65536:
        raise CommandError("--partitions is 1 to 65536")
    engine = get_engine()
    console = Actor.console()
    with console.records("machine.import", machine="", target=path.name) as entry, _interruptible(command):

        def check(source: dict[str, Any]) -> None:
            if source["id"] in BUILT_IN:
                name = f"{source['id']} is a machine of the product"
                raise CommandError(f"{name}, whose instances its own services make")
            demand_unreserved(source)
            entry.name(machine=source["id"])
            prepare_change("import", source["id"], definition=outline(source)).demand_second(
                console, "", action="import", asked={}, reason="",
                hint="have the rule relaxed in the room, import the file, and set the rule again",
            )  # fmt: skip

        report = Import(engine.client, engine.keys, path, partitions=partitions, check=check).run(
            Meter(command, "imported", progress)
        )
        entry.name(machine=report.machine)
        entry.note(written=report.written, there=report.there, refused=report.others)
        adopt(report.machine)
    for problem in report.problems[:MAX_PRINTED]:
        command.stderr.write(problem)
    command.stdout.write(
        f"{report.machine}: {report.written} records written, {report.there} were there,"
        f" {len(report.versions)} versions published"
    )
    if report.others:
        raise CommandError(f"{report.others} records were not written; the first {MAX_PRINTED} are named above")


def repartition_machine(command: BaseCommand, name: str, *, to: int, max_wait: float, progress: bool) -> None:
    """Spread a machine over more partitions. Exits with 130 after Ctrl-C, when the instances under way have arrived."""
    engine, stop = get_engine(), threading.Event()
    if name in BUILT_IN:
        raise CommandError(f"{name} is a machine of the product: what it keeps beside instances cannot move")
    run = Repartition(engine.client, engine.keys, name, to, max_wait=max_wait, stopped=stop.is_set)
    with (
        Actor.console().records("machine.repartition", machine=name, target=str(to)) as entry,
        _stopping(command, stop),
    ):
        report = run.run(Meter(command, "moved", progress))
        entry.note(before=report.before, moved=report.moved, finished=report.finished)
    if not report.finished:
        command.stderr.write(f"stopped after {report.moved} instances; run the same command again to go on")
        sys.exit(INTERRUPTED)
    held = f", {report.taken} of them from workers that held their jobs" if report.taken else ""
    again = f", {report.resumed} that an earlier run had left between two" if report.resumed else ""
    command.stdout.write(
        f"{name}: {report.before} -> {to} partitions, {report.moved} instances moved{held}{again};"
        f" the busiest partition has {report.busiest:.2f} of the mean"
    )


@contextlib.contextmanager
def _stopping(command: BaseCommand, stop: threading.Event) -> Iterator[None]:
    """Set ``stop`` at the first Ctrl-C; a second one interrupts."""

    def handle(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        command.stderr.write("\nstopping as soon as the instances under way have arrived")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    """End quietly after Ctrl-C. Records that were imported stay, and the same command goes on behind them."""
    try:
        yield
    except KeyboardInterrupt:
        command.stderr.write("\nstopped; run the same command again")
        sys.exit(INTERRUPTED)
    except OSError as error:
        raise CommandError(f"{error.filename or ''}: {error.strerror or error}") from error


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
