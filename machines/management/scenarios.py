"""``machine test`` runs scenario files on a real engine in virtual time, and reports as text and as JUnit XML, with the
coverage; ``machine paths`` writes such files; ``machine verify`` walks over what a machine can do, and lists what is
wrong with it.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from machines.catalog import coverage, definition_files
from machines.catalog.coverage import Collector, Coverage
from machines.catalog.editing import runs
from machines.catalog.models import StoredCoverage
from machines.catalog.queries import read_current_row
from machines.conf import extras
from machines.connections import get_engine
from machines.engine import Engine, SignalboxError, VerificationFinding
from machines.engine.definitions import CompiledDefinition, compile_definition
from machines.engine.verification.verifier import list_counts

from .versions import write_file

if TYPE_CHECKING:
    from machines.testing.scenarios.files import Collection
    from machines.testing.scenarios.runner import Result


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME|FILE",
        help="machines of the apps, files or folders; default: everything in the apps' statemachines/tests/ folders",
    )
    parser.add_argument("--url", default="", help="a server that runs, in place of one that is started for the run")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no scenarios that pass")
    parser.add_argument("--junit", metavar="FILE", help="also write the results as JUnit XML")
    add_coverage_arguments(parser)


def add_path_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", help="a machine of the apps, a published one, or a definition")
    parser.add_argument("--pairs", action="store_true", help="also take every pair of following transitions")
    parser.add_argument("--format", choices=["yaml", "pytest"], default="yaml", help="default: yaml, a scenario file")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to search at most; default: 30")
    parser.add_argument("--url", default="", help="a server that runs, in place of one that is started for the run")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there and not to standard output")


def run_paths(
    command: BaseCommand, *, name: str, pairs: bool, format: str, seconds: float, url: str, output: str | None
) -> None:
    """Find runs that take every transition, and write them. Raises CommandError where none is found."""
    require_kit("machine paths")
    from machines.testing.paths.generation import find_paths
    from machines.testing.scenarios import document

    definitions, machine = find_definitions(name)
    with open_server(url) as server:
        found = find_paths(server, definitions, machine, pairs=pairs, most_seconds=seconds)
    taken = f"{len(found.taken)} of {found.total} transitions"
    takers = "1 run takes" if len(found.scenarios) == 1 else f"{len(found.scenarios)} runs take"
    head = f"{machine}: {takers} {taken}" + (f" and {len(found.pairs)} pairs of them" if pairs else "")
    notes = [head, *(f"not taken: {one}" for one in found.missing)]
    for note in notes:
        command.stderr.write(note)
    if not found.scenarios:
        raise CommandError("nothing was written: no run was found")
    write = document.write_yaml if format == "yaml" else document.write_pytest
    text = write(machine, found.scenarios, notes)
    if output is None:
        command.stdout.write(text, ending="")
    else:
        write_file(output, text)


def find_definitions(name: str) -> tuple[dict[str, CompiledDefinition], str]:
    """Find the definition of a machine or of a file, with those beside it and of the apps; return them by machine, and
    the machine's name. Raises CommandError."""
    from machines.testing.scenarios import files

    found = files.Collection()
    machine, path = name, Path(name)
    if path.is_file():
        found.add_definitions([path])
        if not found.definitions:
            raise CommandError("\n".join(*found.broken.values()) or f"{name} holds no definition")
        machine = next(iter(found.definitions))
        found.add_definitions(one for one in files.list_definitions(path.parent) if one.parent == path.parent)
    for _, folder in definition_files.list_folders():
        found.add_definitions(files.list_definitions(folder))
    if found.find(machine, find_published) is None:
        raise CommandError(f"no machine {name!r}: there is no such file, no app defines it, and it is not published")
    return found.definitions, machine


def run(
    command: BaseCommand,
    *,
    names: list[str],
    url: str,
    junit: str | None,
    quiet: bool,
    coverage: bool,
    fail_under: float | None,
    add: list[str],
    record: bool,
) -> None:
    """Run the command. Raises CommandError for scenarios that fail, for files that cannot be read, and for less
    coverage than is asked for."""
    check_options(coverage, fail_under, add, record)
    require_kit("machine test")
    from machines.testing.scenarios import results

    collector = Collector()
    read_files(collector, add)
    collection = collect(names)
    for problem in collection.problems:
        command.stderr.write(problem)
    if not collection.files and not collection.problems and not add:
        raise CommandError(_describe_nothing(names))
    done: list[Result] = []
    for result in _run_all(url, collection, collector if coverage else None):
        done.append(result)
        if not (result.passed and quiet):
            command.stdout.write(results.format_result(result))
    if junit is not None:
        write_file(junit, results.format_junit(done))
    command.stdout.write(results.format_summary(done))
    failed = sum(not result.passed for result in done)
    if failed or collection.problems:
        broken = f"{len(collection.problems)} findings in files that were not run" if collection.problems else ""
        lost = f"{failed} of {len(done)} scenarios failed" if failed else ""
        raise CommandError("; ".join(text for text in (lost, broken) if text))
    if coverage:
        counted = _choose_counted(names, collection)
        if record:
            store(command, collector, counted)
        report(command, collector, counted, fail_under)


def _run_all(url: str, collection: Collection, collector: Collector | None) -> Iterator[Result]:
    """Run all scenarios on one server; without any, start none."""
    from machines.testing.scenarios import runner

    if not collection.files:
        return
    finish = None if collector is None else collector.note_kit
    with open_server(url) as server:
        yield from runner.run_files(server, collection.files, collection.definitions, finish)


def _choose_counted(names: list[str], collection: Collection) -> dict[str, CompiledDefinition]:
    """Choose the machines whose coverage counts: those of the scenarios that are named, else all of the apps, so that a
    machine without any scenario counts as well."""
    machines = {file.machine for file in collection.files}
    if names:
        return {name: collection.definitions[name] for name in machines}
    return collection.definitions


def require_kit(what: str) -> None:
    """Raise CommandError where the packages of the test kit are not installed."""
    try:
        extras.require(what, "test")
    except extras.MissingExtra as error:
        raise CommandError(str(error)) from error


@contextlib.contextmanager
def open_server(url: str) -> Iterator[str]:
    """Give the URL of a server, of one that is started here where none is named. Raises CommandError."""
    from machines.testing.fixtures import NoServer
    from machines.testing.fixtures import open_server as serve

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signalbox-")))
        try:
            given = stack.enter_context(serve(url, lambda: folder, name="--url", what="this command"))
        except NoServer as error:
            raise CommandError(str(error)) from error
        try:
            yield given
        except SignalboxError as error:
            raise CommandError(f"{error.code} {error.message}") from error


def collect(names: list[str]) -> Collection:
    """Read the scenario files that are named, or all of the apps. Raises CommandError for a name that nothing has."""
    from machines.testing.scenarios import files

    folders = [folder for _, folder in definition_files.list_folders()]
    of_apps = [path for folder in folders for path in files.list_scenario_files(folder)]
    paths: dict[Path, None] = {}
    for name in names:
        paths |= dict.fromkeys(_find(name, of_apps))
    definitions = [path for folder in folders for path in files.list_definitions(folder)]
    return files.collect(list(paths) if names else of_apps, definitions, find_published)


def _find(name: str, of_apps: list[Path]) -> list[Path]:
    """Find the scenario files that a word of the command line names."""
    from machines.testing.scenarios import files

    path = Path(name)
    if path.is_dir():
        return files.list_folder(path)
    if path.is_file() or path.suffix in files.ENDINGS:
        return [path]
    found = [each for each in of_apps if (read := files.read_path(each)[0]) is not None and read.machine == name]
    if not found:
        raise CommandError(
            f"no scenarios of {name!r}: there is no such file, and no app has scenarios of such a machine"
        )
    return found


def find_published(name: str) -> CompiledDefinition | None:
    """Find the current version of a machine in the database or in Redis; None where there is none, or neither
    answers."""
    try:
        return compile_definition(read_current_row(name).definition)
    except Exception:  # scenarios run without the site: if it does not answer for any reason, the machine is unknown
        return None


def _describe_nothing(names: list[str]) -> str:
    if names:
        return f"no scenarios in {', '.join(names)}"
    return f"no app has scenarios; write them to the folder {definition_files.FOLDER}/tests/ of an app, or name a file"


MOST_LISTED = 20  # parts of a machine that are not covered


def add_coverage_arguments(parser: ArgumentParser) -> None:
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
            collector.add(coverage.read(Path(name).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise CommandError(f"{name} cannot be read: {error}") from error


def report(
    command: BaseCommand, collector: Collector, definitions: Mapping[str, CompiledDefinition], fail_under: float | None
) -> None:
    """Print the coverage of definitions. Raises CommandError where it is less than is asked for."""
    everything = []
    for machine, compiled in sorted(definitions.items()):
        found = collector.found.get((machine, compiled.digest), Coverage(machine, compiled.digest))
        parts = coverage.list_parts(compiled.outline, found)
        everything += parts
        missing = [part for part in parts if not part.covered]
        covered = f"{len(parts) - len(missing)} of {len(parts)} transitions and false guards"
        command.stdout.write(f"{machine}: {coverage.percent(parts):.0f} %, {covered}")
        for part in missing[:MOST_LISTED]:
            command.stdout.write(f"    not covered: {part}")
        if len(missing) > MOST_LISTED:
            command.stdout.write(f"    and {len(missing) - MOST_LISTED} more")
    total = coverage.percent(everything)
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
    for row in StoredCoverage.record(chosen, f"{getpass.getuser()} (machine test)"):
        command.stdout.write(f"{row.machine}: coverage recorded for definition {row.digest}")


FAILURES = ("found", "undecided", "never")


def add_verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", help="a machine of the apps, a published one, or a definition")
    parser.add_argument("--budget", type=int, default=3000, metavar="N", help="snapshots to try at most; default: 3000")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to try at most; default: 20")
    parser.add_argument("--url", default="", help="another server than the project's; nothing is written there")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--fail-on", choices=FAILURES, default="found",
        help="exit with 1 for what was found (default), also for what was not decided, or never",
    )  # fmt: skip


def verify(
    stdout: OutputWrapper, *, name: str, budget: int, seconds: float, url: str, as_json: bool, fail_on: str
) -> None:
    """Verify, print the findings, and raise CommandError where ``fail_on`` says so."""
    engine = Engine.from_url(url) if url else get_engine()
    machine, definition = _find_definition(engine, name)
    findings = engine.verify(definition, budget=budget, seconds=seconds)
    counts = list_counts(findings)
    if as_json:
        found = {"machine": machine, "counts": counts, "findings": [one.as_dict() for one in findings]}
        stdout.write(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        for one in findings:
            _print_finding(stdout, machine, one)
        stdout.write(f"{machine}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if counts["found"] and fail_on != "never":
        raise CommandError(f"{counts['found']} found")
    if counts["undecided"] and fail_on == "undecided":
        raise CommandError(f"{counts['undecided']} not decided")


def _find_definition(engine: Engine, name: str) -> tuple[str, CompiledDefinition | str]:
    """Find the definition of a file, an app or the engine. Raises CommandError where there is none."""
    try:
        definitions, machine = find_definitions(name)
    except CommandError:
        if name not in engine.machines():
            raise
        return name, name
    return machine, definitions.get(machine, machine)


def _print_finding(output: OutputWrapper, machine: str, one: VerificationFinding) -> None:
    place = f" {one.path}" if one.path else ""
    hint = f"; {one.hint}" if one.hint and one.verdict == "found" else ""
    output.write(f"{one.verdict}: {one.code}{place}: {one.message}{hint}")
    if one.verdict == "found" and (one.run or one.data):
        given = f"with {_encode(dict(one.data))}: " if one.data else ""
        output.write(f"  run: {given}{', '.join(_encode(step) for step in one.run) or 'the creation'}")
        with contextlib.suppress(SignalboxError):  # a run that is too long for a link
            output.write(f"  try it: {runs.link(machine, None, one.run, one.data)}")


def _encode(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
