"""``machine diff NAME A B`` and ``machine plan NAME --to N``: compare versions, and plan the move of instances."""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.connections import get_engine
from machines.engine import Change, DefinitionDiff, MigrationPlan, SourcePlan
from machines.engine.definitions import Finding
from machines.engine.errors import PlanError
from machines.engine.versions.planning.document import ACTIONS, CHOICES, UNMAPPED, PlanOptions

MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": ">"}


def add_diff_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("a", metavar="A", help="the old one: number of a version, or file of a draft")
    parser.add_argument("b", metavar="B", help="the new one: number of a version, or file of a draft")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", dest="as_json", action="store_true", help="print the differences as JSON")
    shown.add_argument("--text", dest="as_text", action="store_true", help="print a unified diff of the definitions")


def add_plan_arguments(parser: ArgumentParser) -> None:
    usual = PlanOptions()
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("--to", type=int, required=True, metavar="N", help="the version that instances get")
    parser.add_argument("--from", dest="sources", metavar="N,N", help="versions to move from; default: all others")
    parser.add_argument(
        "--map",
        dest="mapped",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="the place of a state; NEW,NEW for regions, a JSON list for names with a comma, nothing for no place",
    )
    parser.add_argument(
        "--set", dest="fields", action="append", default=[], metavar="FIELD=EXPRESSION", help="over the old data"
    )
    parser.add_argument(
        "--unmapped", choices=UNMAPPED, default="refuse", help="states without a place; default: refuse"
    )
    for option, choices in CHOICES.items():
        default = getattr(usual, option)
        parser.add_argument(f"--{option}", choices=choices, default=default, help=f"default: {default}")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=[], help="actions that run; default: none")
    parser.add_argument("--keep-undo", default=usual.keep_undo, metavar="7d", help="how long the way back is exact")
    parser.add_argument("--out", metavar="PATH", help="write the plan there as JSON, also one with warnings")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the plan as JSON")
    parser.add_argument(
        "--fail-on",
        choices=["refused"],
        help="try the plan on all instances, print the classes, and exit with 1 where any would be refused",
    )


def run_diff(command: Any, name: str, a: str, b: str, *, as_json: bool, as_text: bool) -> None:
    """Print how two versions or drafts differ. ``command.read_draft`` reads the file of a draft."""
    sides = [_parse_version(one) if _parse_version(one) is not None else command.read_draft(one) for one in (a, b)]
    found = get_engine().diff(name, *sides)
    if as_json:
        command.stdout.write(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    elif as_text:
        command.stdout.write(found.text, ending="")
    else:
        for line in describe_diff(found):
            command.stdout.write(line)


def _parse_version(text: str) -> int | None:
    number = text.removeprefix("v")
    return int(number) if number.isascii() and number.isdigit() else None


def describe_diff(found: DefinitionDiff) -> list[str]:
    """Return the differences as lines for people, those that need a mapping first."""
    names = [f"v{number}" if number else "draft" for number in (found.a, found.b)]
    if not found.changes:
        return [f"{found.machine} {names[0]} and {names[1]} do not differ"]
    lines = [f"{found.machine} {names[0]} -> {names[1]}: {found.verdict}"]
    for verdict in ("needs a mapping", "changes what runs", "compatible"):
        changes = [change for change in found.changes if change.verdict == verdict]
        if changes:
            lines += ["", f"{verdict} ({len(changes)})", *(f"  {_describe_change(change)}" for change in changes)]
    return lines


def _describe_change(change: Change) -> str:
    sides = " -> ".join(filter(None, (change.before, change.after)))
    return f"{MARKS[change.verb]} {change.kind} {change.path}: {sides or change.verb}; {change.reason}"


def run_plan(command: BaseCommand, name: str, options: dict[str, Any]) -> MigrationPlan:
    """Make a plan, print it and write it where that is asked for; return it."""
    try:
        plan = get_engine().plan(
            name,
            options["to"],
            from_versions=_read_numbers(options["sources"]),
            states=dict(_split(one, "--map", read_place) for one in options["mapped"]),
            data=dict(_split(one, "--set", str.strip) for one in options["fields"]),
            unmapped=options["unmapped"],
            actions=options["actions"],
            keep_undo=options["keep_undo"],
            **{option: options[option] for option in CHOICES},
        )
    except PlanError as error:
        _print_findings(command, error.findings)
        errors = sum(finding.is_error for finding in error.findings)
        raise CommandError(f"{error.code} no plan was made: {errors} error{'' if errors == 1 else 's'}") from error
    text = json.dumps(plan.as_dict(), ensure_ascii=False, indent=2)
    if options["out"]:
        write_file(options["out"], f"{text}\n")
    if options["as_json"]:
        command.stdout.write(text)
    else:
        for line in describe_plan(plan):
            command.stdout.write(line)
    _print_findings(command, plan.findings)
    return plan


def _read_numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    numbers = [_parse_version(one.strip()) for one in text.split(",")]
    if None in numbers:
        raise CommandError(f"--from: expected numbers of versions such as 1,2, found {text!r}")
    return [number for number in numbers if number is not None]


def _split(text: str, option: str, read: Callable[[str], Any]) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise CommandError(f"{option}: expected a name, = and a value, found {text!r}")
    return name.strip(), read(value)


def read_place(text: str) -> list[str] | str | None:
    """Return the place in ``Old=New``: a state, several, or None for no place."""
    text = text.strip()
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise CommandError(f"--map: {text} is no JSON list: {error}") from error
        return found if isinstance(found, list) else None
    names = [one.strip() for one in text.split(",") if one.strip()]
    return (names if len(names) > 1 else names[0]) if names else None


def describe_plan(plan: MigrationPlan) -> list[str]:
    """Return a plan as lines for people: what is not as it was, and what has no place."""
    lines = [str(plan)]
    for source in plan.sources:
        kept = sum(targets == (name,) for name, targets in source.states.items())
        lines += ["", f"v{source.version} -> v{source.to}: {_count(kept, 'state')} of the same name"]
        lines += [
            f"  {name} -> {', '.join(targets)} ({source.reasons.get(name, '')})"
            for name, targets in source.states.items()
            if targets != (name,)
        ]
        lines += _describe_unmapped(source, plan.unmapped)
        lines += _describe_rest(source)
    return lines


def _describe_unmapped(source: SourcePlan, policy: str) -> list[str]:
    lines = []
    for name in source.unmapped_states:
        lines.append(f"  {name} has no place: {policy}")
        lines += [
            f"    perhaps --map {name}={new} ({score:.2f}: {why})"
            for old, new, score, why in source.suggestions
            if old == name
        ]
    return lines


def _describe_rest(source: SourcePlan) -> list[str]:
    parts = {
        "computed": [f"{name} = {text}" for name, text in source.data.items()],
        "new": source.added,
        "removed": source.removed,
    }
    lines = [f"  data {word}: {', '.join(names)}" for word, names in parts.items() if names]
    kept = f"{_count(len(source.timers), 'timer')}, {_count(len(source.invokes), 'invoke')}"
    return [*lines, f"  kept: {kept}, {_count(len(source.histories), 'history state')}"]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _print_findings(command: BaseCommand, findings: Sequence[Finding]) -> None:
    for finding in findings:
        command.stderr.write(f"{finding.severity}: {finding}")


def write_file(path: str, text: str) -> None:
    """Write a file that was asked for. Raises CommandError."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
