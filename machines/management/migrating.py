"""``machine migrate`` moves the instances of a machine to another version, or tells what would happen; ``machine
replay`` runs recorded histories on a version and lists what differs."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from machines.catalog.rules import prepare_change
from machines.catalog.version_rules import MIGRATE
from machines.catalog.versions import rollouts
from machines.connections import get_engine
from machines.engine import MigrationPlan
from machines.engine.versions.migration import MOST_RATE
from machines.engine.versions.records import REFUSED, UNTOLD, Divergence, DryRun, Replay, StepOutcome
from machines.people.actor import Actor

from .verbs import read_json

SHOWN = 20  # refused instances that are listed


def add_migrate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("--plan", required=True, metavar="FILE", help="a plan as JSON, as `machine plan` writes it")
    parser.add_argument("--back", action="store_true", help="take back what the plan moved: by its inverse")
    parser.add_argument(
        "--make-current", action="store_true", help="with --back: make the older version current first, and pin it"
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing: print the classes")
    parser.add_argument("--rate", type=int, default=0, metavar="N", help="max instances per second; 0: no limit")
    parser.add_argument("--reason", default="", help="why; it stands in the history of each instance")
    parser.add_argument("--actor", default="", help="who; by default the system account")


def migrate(
    command: BaseCommand,
    *,
    name: str,
    plan: str,
    back: bool,
    make_current: bool,
    dry_run: bool,
    rate: int,
    reason: str,
    actor: str,
) -> None:
    """Move, print the results, and raise CommandError where an instance was refused."""
    if make_current and not back:
        raise CommandError("--make-current goes with --back; `publish` or a roll-out makes a new version current")
    made = read_plan(name, plan)
    made = made.inverse() if back else made
    engine = get_engine()
    if dry_run:
        write_classes(command.stdout, engine.dry_run(made))
        return
    if not reason.strip():
        raise CommandError("give a --reason: it stands in the history of each instance")
    if not 0 <= rate <= MOST_RATE:
        raise CommandError(f"--rate is 0, for no limit, or instances per second, {MOST_RATE:,} at most, not {rate}")
    console = Actor.console()
    with console.records("machine.migrate", machine=name, target=made.id, reason=reason) as entry:
        moves = [(source.version, source.to) for source in made.sources]
        prepare_change(MIGRATE, name, moves=moves).demand_second(
            console, "", action=MIGRATE, asked={}, reason=reason,
            hint="store the plan in the room (`POST /plans`) and run the bulk action there",
        )  # fmt: skip
        if make_current:
            rollouts.make_current(console, name, made.to, reason=reason)
            command.stdout.write(f"version {made.to} is current and pinned: unpin it before another version is current")
        done = engine.migrate(made, actor=actor or console.name, reason=reason, rate=rate)
        sums = {"moved": done.moved, "already": done.already, "kept": done.kept, "refused": len(done.refused)}
        entry.note(**sums, to=made.to)
    command.stdout.write(", ".join(f"{name}: {n}" for name, n in {"instances": sum(sums.values()), **sums}.items()))
    for (version, why), count in done.stays.items():
        command.stdout.write(f"  {count} stay in version {version}: {why}")
    if back and rollouts.gives_others(name, made.to):
        command.stdout.write(f"new instances do not get version {made.to}: --make-current changes that")
    if done.refused:
        raise CommandError(f"{len(done.refused)} instances were refused and stay as they were")


def read_plan(name: str, file: str) -> MigrationPlan:
    """Read the plan of a machine from a file. Raises CommandError, PlanError."""
    plan = MigrationPlan.from_dict(read_json(file))
    if plan.machine != name:
        raise CommandError(f"{file} is a plan for the machine {plan.machine!r}, not for {name!r}")
    return plan


def write_classes(output: OutputWrapper, found: DryRun) -> None:
    """Print what a dry run found, a class in a line, and the first of the refused instances."""
    for each in found.classes:
        target = f" -> {', '.join(each.target)}" if each.target else ""
        why = f": {each.reason} ({each.code})" if each.code else f": {each.reason}" if each.reason else ""
        effects = "".join(f"; {effect}" for effect in each.effects)
        place = f"v{each.version} {', '.join(each.configuration)}{target}"
        output.write(f"{each.count:>9,}  {place}  {each.outcome}{why}{effects}")
    output.write(f"instances: {found.total}, refused: {found.refused_count}")
    for one in found.refused[:SHOWN]:
        output.write(f"  {one.id}: v{one.version} in {one.state}: {one.reason} ({one.code})")
    if len(found.refused) > SHOWN:
        output.write(f"  and {len(found.refused) - SHOWN} more")


def try_plan(output: OutputWrapper, plan: MigrationPlan) -> None:
    """Print what a plan would do with every instance. Raises CommandError, for the exit code, where it refuses any."""
    found = get_engine().dry_run(plan)
    write_classes(output, found)
    if found.refused_count:
        classes = sum(each.outcome == REFUSED for each in found.classes)
        raise CommandError(f"{found.refused_count} instances in {classes} classes would be refused")


FAILURES = ("divergence", "untold")


def add_replay_arguments(parser: ArgumentParser) -> None:
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


def replay(
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
        _print_replay(stdout, found)
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


def _print_replay(output: OutputWrapper, found: Replay) -> None:
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
    output.write(f"  recorded: {_describe_outcome(one.expected)}")
    output.write(f"  replayed: {_describe_outcome(one.actual)}")
    output.write(f"  for example {one.example}, revision {one.step}")


def _describe_outcome(outcome: StepOutcome) -> str:
    parts = [", ".join(outcome.configuration) or "(nothing)"]
    if outcome.transitions:
        parts.append(f"by {' '.join(outcome.transitions)}")
    # Values may be personal: the command names the fields, JSON has the values.
    if outcome.data:
        parts.append(f"with other {', '.join(sorted(outcome.data))}")
    if outcome.error:
        parts.append(f"error: {outcome.error}")
    return "; ".join(parts)
