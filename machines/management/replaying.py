"""``manage.py machine replay NAME --version N``: runs recorded histories on a version and lists what differs."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence

from django.core.management.base import CommandError, OutputWrapper

from machines.connections import get_engine
from machines.engine.versions.records import UNTOLD, Divergence, Replay, StepOutcome

FAILURES = ("divergence", "untold")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("--version", dest="number", type=int, required=True, metavar="N", help="a published version")
    parser.add_argument("--sample", type=int, metavar="N", help="so many instances; default: all")
    parser.add_argument(
        "--map", action="append", default=[], metavar="OLD=NEW", help="a state that has another name in version N"
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--fail-on", choices=FAILURES, help="exit with 1 for a divergence, or also for steps that cannot be told"
    )


def run(
    stdout: OutputWrapper,
    name: str,
    number: int,
    *,
    sample: int | None,
    map: Sequence[str],
    as_json: bool,
    fail_on: str | None,
) -> None:
    """Replay, print the result, and raise CommandError where ``fail_on`` says so."""
    found = get_engine().replay(name, number, sample, states=_read_map(map))
    if as_json:
        stdout.write(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        _print(stdout, found)
    differing = sum(one.count for one in found.divergences)
    if fail_on and differing:
        raise CommandError(f"{differing} instances differ on version {number}")
    if fail_on == "untold" and found.untold:
        raise CommandError(f"{sum(found.untold.values())} steps cannot be told from their histories")


def _read_map(words: Sequence[str]) -> dict[str, list[str]]:
    """Read ``Old=New``; ``Old=One,Two`` names states of several regions."""
    states = {}
    for word in words:
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            raise CommandError(f"--map takes Old=New, not {word}")
        states[old] = new.split(",")
    return states


def _print(output: OutputWrapper, found: Replay) -> None:
    output.write(
        f"{found.machine} on version {found.version}: {found.instances} instances, {found.recorded} recorded steps, "
        f"{found.steps} replayed"
    )
    for reason, count in found.untold.items():
        output.write(f"untold: {count} steps: {UNTOLD[reason]}")
    if found.skipped:
        output.write(f"skipped: {found.skipped} steps behind the first difference of their instance")
    for one in found.divergences:
        _print_divergence(output, one)
    if not found.divergences:
        output.write("no divergence")


def _print_divergence(output: OutputWrapper, one: Divergence) -> None:
    output.write(
        f"{one.count} of version {one.version}, in {one.path or '(nothing)'}: {one.event}: {', '.join(one.kinds)}"
    )
    output.write(f"  recorded: {_describe(one.expected)}")
    output.write(f"  replayed: {_describe(one.actual)}")
    output.write(f"  for example {one.example}, revision {one.step}")


def _describe(outcome: StepOutcome) -> str:
    parts = [", ".join(outcome.configuration) or "(nothing)"]
    if outcome.transitions:
        parts.append(f"by {' '.join(outcome.transitions)}")
    # Values may be personal: the command names the fields, JSON has the values.
    if outcome.data:
        parts.append(f"with other {', '.join(sorted(outcome.data))}")
    if outcome.error:
        parts.append(f"error: {outcome.error}")
    return "; ".join(parts)
