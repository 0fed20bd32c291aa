"""Verbs of management commands: each takes the options of every Django command, before it and after it; and the files
that verbs read."""

import json
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, DjangoHelpFormatter


def add_verbs(parser: ArgumentParser) -> Any:
    """Add the place of a verb to the parser of a command; return what ``add_verb`` takes."""
    return parser.add_subparsers(dest="verb", metavar="VERB", required=True)


def add_verb(command: BaseCommand, verbs: Any, name: str, about: str) -> ArgumentParser:
    """Add a verb; return its parser. An option of the verb takes the place of Django's of the same name."""
    plain = BaseCommand()
    plain.requires_system_checks = command.requires_system_checks  # whether there is --skip-checks
    common = plain.create_parser("", name, add_help=False)
    for action in common._actions:
        action.default = SUPPRESS  # what stands before the verb holds
    parser: ArgumentParser = verbs.add_parser(
        name, help=about, description=about, parents=[common], conflict_handler="resolve",
        formatter_class=DjangoHelpFormatter,
    )  # fmt: skip
    return parser


def read_bytes(file: str) -> bytes:
    """Read a file, "-" for the standard input. Raises CommandError."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error


def read_json(file: str) -> Any:
    """Read the JSON of a file, "-" for the standard input. Raises CommandError."""
    try:
        return json.loads(read_bytes(file))
    except ValueError as error:
        raise CommandError(f"{file} is no JSON: {error}") from error
