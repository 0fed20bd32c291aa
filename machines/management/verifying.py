"""``manage.py machine verify NAME|FILE``: walks over what a machine can do, and lists what is wrong with it."""

from __future__ import annotations

import contextlib
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from machines.catalog.editing import runs
from machines.connections import get_engine
from machines.engine import Engine, SignalboxError, VerificationFinding
from machines.engine.definitions import CompiledDefinition
from machines.engine.verification.verifier import list_counts

from .scenarios import find_definitions

FAILURES = ("found", "undecided", "never")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", help="a machine of the apps, a published one, or a definition")
    parser.add_argument("--budget", type=int, default=3000, metavar="N", help="snapshots to try at most; default: 3000")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to try at most; default: 20")
    parser.add_argument("--url", default="", help="another server than the project's; nothing is written there")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--fail-on", choices=FAILURES, default="found",
        help="exit with 1 for what was found (default), also for what was not decided, or never",
    )  # fmt: skip


def run(
    stdout: OutputWrapper, *, name: str, budget: int, seconds: float, url: str, as_json: bool, fail_on: str
) -> None:
    """Verify, print the findings, and raise CommandError where ``fail_on`` says so."""
    engine = Engine.from_url(url) if url else get_engine()
    machine, definition = _find(engine, name)
    findings = engine.verify(definition, budget=budget, seconds=seconds)
    counts = list_counts(findings)
    if as_json:
        found = {"machine": machine, "counts": counts, "findings": [one.as_dict() for one in findings]}
        stdout.write(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        for one in findings:
            _print(stdout, machine, one)
        stdout.write(f"{machine}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if counts["found"] and fail_on != "never":
        raise CommandError(f"{counts['found']} found")
    if counts["undecided"] and fail_on == "undecided":
        raise CommandError(f"{counts['undecided']} not decided")


def _find(engine: Engine, name: str) -> tuple[str, CompiledDefinition | str]:
    """Find the definition of a file, an app or the engine. Raises CommandError where there is none."""
    try:
        definitions, machine = find_definitions(name)
    except CommandError:
        if name not in engine.machines():
            raise
        return name, name
    return machine, definitions.get(machine, machine)


def _print(output: OutputWrapper, machine: str, one: VerificationFinding) -> None:
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
