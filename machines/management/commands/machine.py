"""``python manage.py machine``: checks, publishes, imports and exports definitions, and moves machines."""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from machines import diagrams, formats
from machines.approvals.models import Approval
from machines.catalog.models import Machine
from machines.catalog.publishing import restore
from machines.catalog.queries import get_version, list_changes, read_current_row
from machines.catalog.submissions import FORMAT_NAMES, GUESS, Submission, read
from machines.connections import get_engine
from machines.engine.definitions import CompiledDefinition, outline, schema
from machines.engine.errors import SignalboxError, UnknownMachine
from machines.management import migrating, publishing, reconciliation, scenarios, transfers, versions
from machines.management.publishing import add_user_argument, find_actor, publish
from machines.management.verbs import add_verb, add_verbs, read_bytes
from machines.testing.scenarios import schema as scenario_schema


class Verb(NamedTuple):
    """A verb of the command. ``run`` gets those of its options that its parameters name, ``options`` for all of them;
    ``command`` and ``stdout`` are the command and its standard output."""

    help: str
    add_arguments: Callable[[ArgumentParser], object]
    run: Callable[..., None]


class Command(BaseCommand):
    help = "Checks, draws, publishes and converts definitions. FILE may be - for standard input."
    requires_system_checks = []  # checking a file needs neither Redis nor a database

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = add_verbs(parser)
        for name, verb in VERBS.items():
            verb.add_arguments(add_verb(self, verbs, name, verb.help))

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            self._call(VERBS[verb].run, options)
        except SignalboxError as error:
            raise CommandError(f"{error.code} {error.message}") from error
        except DatabaseError as error:
            raise CommandError(f"database error: {error}; have you run `manage.py migrate`?") from error

    def _call(self, run: Callable[..., None], options: dict[str, Any]) -> None:
        given = options | {"self": self, "command": self, "stdout": self.stdout, "options": options}
        run(**{name: given[name] for name in signature(run).parameters})

    def _validate(self, file: str, format: str) -> None:
        submission = self._read(file, format)
        self.stdout.write(f"{submission.name or file}: {submission.summary}")
        if submission.errors:
            raise CommandError("this definition cannot be published")

    def _publish(self, file: str, format: str, notes: str, user: str) -> None:
        submission = self._read(file, format)
        if submission.errors:
            raise CommandError(f"nothing was published: {submission.summary}")
        self._make_current(submission.compiled, notes, user)

    def _list(self) -> None:
        engine = get_engine()
        rows = [
            (name, f"v{number}", f"instances: {engine.live(name).total}") for name, number in engine.machines().items()
        ]
        lost = Machine.objects.exclude(name__in=[name for name, *_ in rows])
        rows += [(machine.name, f"v{machine.current}", "not in Redis: see `machine restore`") for machine in lost]
        width = max((len(name) for name, *_ in rows), default=0)
        for name, version, instances in rows:
            self.stdout.write(f"{name:{width}}  {version:>4}  {instances}")

    def _diagram(self, file: str, format: str, kind: str, output: str | None) -> None:
        submission = self._read(file, format, to=self.stderr)
        if submission.errors:
            raise CommandError(f"nothing was drawn: {submission.summary}")
        if submission.compiled is None:
            raise CommandError("nothing was drawn: there is no definition")
        outline = submission.compiled.outline
        is_svg = kind == "svg"
        text = diagrams.standalone(diagrams.draw(outline, full=True)) if is_svg else diagrams.dot(outline)
        if output is None:
            self.stdout.write(text, ending="")
        else:
            versions.write_file(output, text)
            self.stdout.write(f"{output}: {len(text.encode())} bytes")

    def _import(self, file: str, options: dict[str, Any]) -> None:
        if transfers.is_transfer(file):
            self._call(transfers.import_machine, options | {"path": Path(file)})
        else:
            self._call(self._convert, options)

    def _convert(
        self, file: str, format: str, id: str, publish: bool, notes: str, user: str, output: str | None
    ) -> None:
        written_as = _choose_format(output)
        submission = self._read(file, format, to=self.stderr, id=id)
        if submission.definition is None:
            raise CommandError(f"nothing was read as {submission.format}: {submission.summary}")
        if output is not None or not publish:
            self._hand_over(submission.definition, written_as, output)
        if submission.errors:
            left = "" if output is None and publish else "; what was written is a draft"
            raise CommandError(f"this definition cannot be published: {submission.summary}{left}")
        if publish:
            self._make_current(submission.compiled, notes, user)

    def _export(
        self, name: str, number: int | None, format: str | None, output: str | None, target: str | None, progress: bool
    ) -> None:
        if target is not None:
            if number is not None or format is not None or output is not None:
                raise CommandError("--version, --format and -o are for definitions; FILE takes all instances")
            transfers.export_machine(self, name, Path(target), progress=progress)
            return
        format = format or _choose_format(output)
        try:
            version = read_current_row(name) if number is None else get_version(name, number)
        except UnknownMachine as error:
            what = f"no machine {name!r}" if number is None else f"no version {number} of a machine {name!r}"
            raise CommandError(f"{what} is published; `machine list` names those there are") from error
        self._hand_over(version.definition, format, output)

    def _hand_over(self, definition: dict[str, Any], format: str, output: str | None) -> None:
        """Write the definition in a format. Findings about what the format leaves out go to standard error."""
        text, findings = formats.dump(definition, format)
        for finding in findings:
            self.stderr.write(str(finding))
        if output is None:
            self.stdout.write(text, ending="" if text.endswith("\n") else "\n")
        else:
            versions.write_file(output, text)
            self.stderr.write(f"{output}: {format}, {len(text.encode())} bytes")

    def _make_current(self, compiled: CompiledDefinition | None, notes: str, user: str) -> None:
        assert compiled is not None  # it has no errors
        for finding in list_changes(compiled):
            self.stdout.write(str(finding))
        made = publish(find_actor(user), compiled, notes)
        if isinstance(made, Approval):
            self.stdout.write(f"{made.machine} {made.target}: request {made.pk} waits for a second person")
        else:
            self.stdout.write(f"{made.machine.name} v{made.number} is current ({made.digest})")

    def _plan(self, name: str, fail_on: str | None, options: dict[str, Any]) -> None:
        plan = versions.run_plan(self, name, options)
        if fail_on:
            migrating.try_plan(self.stderr if options["as_json"] else self.stdout, plan)

    def _schema(self, scenarios: bool) -> None:
        found = scenario_schema() if scenarios else schema()
        self.stdout.write(json.dumps(found, indent=2, ensure_ascii=False))

    def _accepts(self) -> None:
        engine = get_engine()
        for name in engine.machines():
            senders = outline(engine.definition(name)).accepts
            self.stdout.write(f"{name}: {', '.join(senders or ()) or 'no other machine'}")

    def _check(self) -> None:
        engine = get_engine()
        faults = engine.check_partitions()
        for fault in faults:
            self.stdout.write(str(fault))
        if faults:
            raise CommandError(f"{len(faults)} faults were found; nothing was changed")
        self.stdout.write("all partitions are whole")

    def _restore(self) -> None:
        restored = restore()
        for version in restored:
            self.stdout.write(f"{version.machine.name} v{version.number} restored to Redis")
        if not restored:
            self.stdout.write("Redis has all versions")

    def read_draft(self, file: str) -> CompiledDefinition:
        """Read the file of a draft; print its errors."""
        submission = self._read(file, GUESS, to=self.stderr)
        if submission.errors or submission.compiled is None:
            raise CommandError(f"{file}: {submission.summary}")
        return submission.compiled

    def _read(self, file: str, format: str, to: Any = None, id: str = "") -> Submission:
        """Read the file and print all its findings."""
        name, base = ("", None) if file == "-" else (file, Path(file))
        submission = read(read_bytes(file), format=format, name=name, id=id, base=base)
        for finding in submission.findings:
            (to or self.stdout).write(str(finding))
        return submission


def _take_nothing(parser: ArgumentParser) -> None:
    pass


def _take_file(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a definition; - is standard input")
    parser.add_argument(
        "--format", choices=FORMAT_NAMES, default=GUESS, help="default: by the file's ending, or its start"
    )


def _take_output(parser: ArgumentParser, default: str) -> None:
    what = f"write there and not to standard output; its ending tells the format, of {', '.join(formats.WRITERS)}"
    parser.add_argument("-o", "--output", metavar="PATH", help=f"{what}; default: {default}" if default else what)


def _take_notes(parser: ArgumentParser) -> None:
    parser.add_argument("--notes", default="", help="what changed")
    add_user_argument(parser)


def _add_publish_arguments(parser: ArgumentParser) -> None:
    _take_file(parser)
    _take_notes(parser)


def _add_diagram_arguments(parser: ArgumentParser) -> None:
    _take_file(parser)
    parser.add_argument("--as", dest="kind", choices=["svg", "dot"], default="svg", help="default: svg")
    parser.add_argument("--output", metavar="PATH", help="write there and not to standard output")


def _add_import_arguments(parser: ArgumentParser) -> None:
    _take_file(parser)
    parser.add_argument("--id", default="", metavar="NAME", help="machine name to use instead of the name in the file")
    parser.add_argument("--publish", action="store_true", help="also publish it as the current version")
    _take_notes(parser)
    _take_output(parser, "json")
    transfers.add_import_arguments(parser)


def _add_export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    transfers.add_export_arguments(parser)
    parser.add_argument("--version", dest="number", type=int, metavar="N", help="default: the current one")
    parser.add_argument("--format", choices=[*formats.WRITERS], help="default: by the ending of -o, else json")
    _take_output(parser, "")


def _add_schema_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--scenarios", action="store_true", help="that of scenario files instead")


def _choose_format(output: str | None) -> str:
    """Return the format to write a file in, by its ending. Raises CommandError for an ending that no format has."""
    if output is None or not Path(output).suffix:
        return "json"
    format = formats.format_of(output, "")
    if format not in formats.WRITERS:
        endings = ", ".join(ending for ending, name in formats.SUFFIXES.items() if name in formats.WRITERS)
        raise CommandError(f"{output}: no format that can be written has this ending; the endings: {endings}")
    return format


VERBS: Mapping[str, Verb] = {
    "validate": Verb("print every finding; exit with 1 when one is an error", _take_file, Command._validate),
    "publish": Verb("publish a definition as the current version", _add_publish_arguments, Command._publish),
    "sync": Verb(
        "publish the definitions of the apps' statemachines/ folders that changed",
        publishing.add_arguments, publishing.run,
    ),
    "list": Verb("print every machine with its version and its number of instances", _take_nothing, Command._list),
    "diagram": Verb("draw a definition", _add_diagram_arguments, Command._diagram),
    "import": Verb(
        "convert a file of any format to a definition; or import an exported machine",
        _add_import_arguments, Command._import,
    ),
    "export": Verb(
        "write a published version in any format; or the machine with all its instances to FILE",
        _add_export_arguments, Command._export,
    ),
    "diff": Verb("compare two versions, or a version and a file", versions.add_diff_arguments, versions.run_diff),
    "plan": Verb(
        "plan where instances of other versions stand in a version", versions.add_plan_arguments, Command._plan
    ),
    "schema": Verb("print the JSON Schema of definitions, for editors", _add_schema_arguments, Command._schema),
    "test": Verb("run scenario files on a server of the run's own", scenarios.add_arguments, scenarios.run),
    "paths": Verb(
        "find few runs that take every transition, and write them as tests",
        scenarios.add_path_arguments, scenarios.run_paths,
    ),
    "verify": Verb(
        "find what a machine can never do, or never should, before it runs",
        scenarios.add_verify_arguments, scenarios.verify,
    ),
    "accepts": Verb("print the accepted senders of each machine", _take_nothing, Command._accepts),
    "check": Verb(
        "find partitions that are split over nodes of a cluster; exit with 1 for any",
        _take_nothing, Command._check,
    ),
    "repartition": Verb(
        "spread a machine with its instances over more partitions, while it runs",
        transfers.add_repartition_arguments, transfers.repartition_machine,
    ),
    "erase": Verb(
        "erase one person's data everywhere, and search for the rest",
        transfers.add_erase_arguments, transfers.erase_data,
    ),
    "reconcile": Verb(
        "compare the rows of a bound model with the machine's instances, and mend",
        reconciliation.add_arguments, reconciliation.run,
    ),
    "replay": Verb(
        "run recorded histories on a version, without writing, and list what differs",
        migrating.add_replay_arguments, migrating.replay,
    ),
    "migrate": Verb(
        "move the instances of a machine to another version, by a plan",
        migrating.add_migrate_arguments, migrating.migrate,
    ),
    "restore": Verb("restore an emptied Redis from the database", _take_nothing, Command._restore),
}  # fmt: skip
