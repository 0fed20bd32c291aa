"""``python manage.py machine``: definitions on the command line."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from machines import diagrams
from machines.connections import get_engine
from machines.engine.definitions import outline, schema
from machines.engine.errors import SignalboxError
from machines.models import Machine
from machines.publishing import publish, restore
from machines.submission import FORMAT_NAMES, GUESS, Submission, read


class Command(BaseCommand):
    help = "Checks, draws and publishes definitions. FILE may be - for standard input."
    requires_system_checks = []  # checking a file needs neither Redis nor a database

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
        _takes_file(verbs.add_parser("validate", help="print every finding; exit with 1 when one is an error"))
        publishing = _takes_file(verbs.add_parser("publish", help="make a definition its machine's current version"))
        publishing.add_argument("--notes", default="", help="what changed, for people")
        verbs.add_parser("list", help="print every machine with its version and its number of instances")
        drawing = _takes_file(verbs.add_parser("diagram", help="draw a definition"))
        drawing.add_argument("--as", dest="kind", choices=["svg", "dot"], default="svg", help="default: svg")
        drawing.add_argument("--output", metavar="PATH", help="write there and not to standard output")
        verbs.add_parser("schema", help="print the JSON Schema of definitions, for editors")
        verbs.add_parser("restore", help="publish to an emptied Redis what the database knows")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(**options)
        except SignalboxError as error:
            raise CommandError(f"{error.code} {error.message}") from error
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used: {error}; have you run `manage.py migrate`?") from error

    def _validate(self, file: str, format: str, **_: Any) -> None:
        submission = self._read(file, format)
        self.stdout.write(f"{_name(submission, file)}: {submission.summary}")
        if submission.errors:
            raise CommandError("this definition cannot be published")

    def _publish(self, file: str, format: str, notes: str, **_: Any) -> None:
        submission = self._read(file, format)
        if submission.errors:
            raise CommandError(f"nothing was published: {submission.summary}")
        version = publish(submission.definition, notes=notes)
        self.stdout.write(f"{version.machine.name} v{version.number} is current ({version.digest})")

    def _list(self, **_: Any) -> None:
        engine = get_engine()
        rows = [
            (name, f"v{number}", f"instances: {sum(engine.counts(name).values())}")
            for name, number in engine.machines().items()
        ]
        lost = Machine.objects.exclude(name__in=[name for name, *_ in rows])
        rows += [(machine.name, f"v{machine.current}", "not in Redis: see `machine restore`") for machine in lost]
        width = max((len(name) for name, *_ in rows), default=0)
        for name, version, instances in rows:
            self.stdout.write(f"{name:{width}}  {version:>4}  {instances}")

    def _diagram(self, file: str, format: str, kind: str, output: str | None, **_: Any) -> None:
        submission = self._read(file, format, to=self.stderr)
        if submission.errors:
            raise CommandError(f"nothing was drawn: {submission.summary}")
        diagram = diagrams.draw(outline(submission.definition))
        text = diagrams.standalone(diagram.svg) if kind == "svg" else diagram.dot
        if output is None:
            self.stdout.write(text, ending="")
        else:
            _write(output, text)
            self.stdout.write(f"{output}: {len(text.encode())} bytes")

    def _schema(self, **_: Any) -> None:
        self.stdout.write(json.dumps(schema(), indent=2, ensure_ascii=False))

    def _restore(self, **_: Any) -> None:
        restored = restore()
        for version in restored:
            self.stdout.write(f"{version.machine.name} v{version.number} is in Redis again")
        if not restored:
            self.stdout.write("Redis has every version there is")

    def _read(self, file: str, format: str, to: Any = None) -> Submission:
        """The file with all its findings printed."""
        submission = read(_bytes(file), format=format, name="" if file == "-" else file)
        for finding in submission.findings:
            (to or self.stdout).write(str(finding))
        return submission


def _takes_file(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("file", metavar="FILE", help="a definition; - is standard input")
    parser.add_argument(
        "--format", choices=FORMAT_NAMES, default=GUESS, help="default: by the file's ending, or its start"
    )
    return parser


def _bytes(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def _name(submission: Submission, file: str) -> str:
    named = (submission.definition or {}).get("id")
    return named if isinstance(named, str) else file
