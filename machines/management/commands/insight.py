"""``python manage.py insight``: prints how instances of a machine went, where they waited, and how far they came."""

import json
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.catalog.queries import get_version, read_current_row
from machines.conf.kinds import FactsPlace, Unfit
from machines.engine.errors import SignalboxError
from machines.engine.transfer.drafts import open_draft
from machines.insight import questions
from machines.insight.discovery import check_log, discover
from machines.insight.errors import BadSearch
from machines.insight.exports import write_parquet, write_xes
from machines.insight.records import Durations, Extent, Funnel, Paths, Search, Spread
from machines.insight.store import get_store, open_store
from machines.management.verbs import add_verb, add_verbs

VERBS = {
    "paths": "print the ways that instances took, with shares and times",
    "funnel": "print how many instances reach states one after the other",
    "durations": "print how long instances were in each state",
}
UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


class Command(BaseCommand):
    help = "Answers from the facts of insight: paths, funnel and durations of a machine's instances."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = add_verbs(parser)
        export = add_verb(self, verbs, "export", "write the facts as XES, or as Parquet: by the ending of FILE")
        export.add_argument("machine", metavar="MACHINE")
        export.add_argument("file", type=Path, metavar="FILE")
        discovery = add_verb(self, verbs, "discover", "print a draft of a machine from a log: CSV, XES or OCEL 2.0")
        discovery.add_argument("file", type=Path, metavar="FILE")
        discovery.add_argument("--least", type=float, default=0.05, metavar="SHARE", help="of the steps that count")
        conformance = add_verb(self, verbs, "conformance", "print the steps of a log that a definition does not have")
        conformance.add_argument("machine", metavar="MACHINE")
        conformance.add_argument("--log", dest="file", type=Path, required=True, metavar="FILE")
        conformance.add_argument("--version", dest="number", type=int, metavar="N", help="default: the current one")
        adoption = add_verb(self, verbs, "adopt", "copy the facts of another folder, or database:ALIAS")
        adoption.add_argument("place", metavar="PLACE")
        for name, about in VERBS.items():
            verb = add_verb(self, verbs, name, about)
            verb.add_argument("machine", metavar="MACHINE")
            if name == "funnel":
                verb.add_argument("states", nargs="+", metavar="STATE")
                verb.add_argument("--within", type=float, metavar="SECONDS", help="from the first state to the last")
            verb.add_argument("--of-version", type=int, action="append", default=[], metavar="N")
            verb.add_argument("--begin", type=int, metavar="MS", help="created at or after this time")
            verb.add_argument("--end", type=int, metavar="MS", help="created before this time")
            verb.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="of indexed data")
            verb.add_argument("--tag", default="", help="in a state with this tag now")
            verb.add_argument("--actor", default="", help="took part in a step")
            verb.add_argument("--state", default="", help="in this state now")
            verb.add_argument("--format", choices=("text", "json"), default="text")

    def handle(self, *, verb: str, **given: Any) -> None:
        try:
            others: dict[str, Callable[..., None]] = {
                "discover": self._discover, "export": self._export, "adopt": self._adopt,
                "conformance": self._check_log,
            }  # fmt: skip
            answer = others.get(verb, self._answer)
            answer(verb=verb, **given)
        except SignalboxError as error:
            raise CommandError(f"{error} ({error.code})") from error
        except Unfit as error:
            raise CommandError(str(error)) from error
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{given.get('file', verb)}: {error}") from error

    def _discover(self, *, file: Path, least: float, **_: Any) -> None:
        found = discover(file.read_text(encoding="utf-8"), file.stem, least=least)
        self.stdout.write(found.text)
        self.stderr.write(f"{found.cases} cases, {found.events} events, {found.kept:.1%} of the steps kept")

    def _check_log(self, *, machine: str, number: int | None, file: Path, **_: Any) -> None:
        version = read_current_row(machine) if number is None else get_version(machine, number)
        found = check_log(file.read_text(encoding="utf-8"), version.definition, version.number)
        self.stdout.write(
            f"{describe_extent(found.extent)}; {found.fitting} fit v{version.number}, {found.unchecked} steps unchecked"
        )
        for one in found.deviations:
            self.stdout.write(f"{one.count:9}  {one.source} > {one.target or '?'}  {one.event}  e.g. {one.example}")
        if found.extent.left_out:
            self.stdout.write(f"{found.extent.left_out:9}  rarer deviations")

    def _export(self, *, machine: str, file: Path, **_: Any) -> None:
        check_machine(machine)
        if file.suffix not in (".xes", ".parquet"):
            raise BadSearch(f"{file} ends neither with .xes nor with .parquet")
        with open_draft(file) as draft:
            if file.suffix == ".parquet":
                result = f"{write_parquet(machine, draft)} steps"
            else:
                with draft.open("w", encoding="utf-8") as output:
                    result = f"{write_xes(Search(machine), output)} instances"
        self.stdout.write(result)

    def _adopt(self, *, place: str, **_: Any) -> None:
        store, other = get_store(), open_store(FactsPlace().read("PLACE", place))
        if not (machines := other.machines()):
            raise BadSearch(f"{place} has no facts")
        refusals = []
        for machine in machines:
            try:
                self.stdout.write(f"{machine}: {store.adopt(machine, other)} steps")
            except BadSearch as error:
                refusals.append(error.message)
        if refusals:
            raise BadSearch("; ".join(refusals))

    def _answer(self, *, verb: str, machine: str, **given: Any) -> None:
        check_machine(machine)
        where = tuple((name, value) for name, _, value in (one.partition("=") for one in given["where"]))
        search = Search(
            machine, tuple(given["of_version"]), given["begin"], given["end"], where, given["tag"], given["actor"],
            given["state"],
        )  # fmt: skip
        if verb == "funnel":
            within = None if given["within"] is None else round(given["within"] * 1000)
            found: Paths | Funnel | Durations = questions.funnel(search, given["states"], within)
        else:
            found = questions.paths(search) if verb == "paths" else questions.durations(search)
        if given["format"] == "json":
            self.stdout.write(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join([describe_extent(found.extent), *describe(found)]))


def check_machine(machine: str) -> None:
    if machine not in (known := get_store().machines()):
        raise BadSearch(f"there are no facts of {machine!r}; there are of {', '.join(known) or 'no machine yet'}")


def describe_extent(extent: Extent) -> str:
    lost = f", {extent.lost} steps lost: keep more by `history` in the definition" if extent.lost else ""
    return f"{extent.instances} instances, {extent.steps} steps{lost}"


def describe(found: Paths | Funnel | Durations) -> list[str]:
    """Return the lines of an answer."""
    if isinstance(found, Funnel):
        return [f"{one.share:7.1%} {one.instances:9}  {one.state}  {describe_spread(one.wait)}" for one in found.stages]
    if isinstance(found, Durations):
        return [f"{one.state}  {describe_spread(one.stay)}" for one in found.states]
    lines = [
        f"{one.share:7.1%} {one.count:9}  {' > '.join(one.states)}"
        f"{f', {one.loops} loops' if one.loops else ''}  {describe_spread(one.duration)}"
        for one in found.paths
    ]
    return [*lines, f"{found.rest:17}  in {found.rest_paths} rarer paths"] if found.rest else lines


def describe_spread(found: Spread) -> str:
    if not found.count:
        return ""
    return f"p50 {describe_time(found.p50)}, p95 {describe_time(found.p95)}, p99 {describe_time(found.p99)}"


def describe_time(ms: int) -> str:
    return next((f"{ms / size:.3g} {unit}" for size, unit in UNITS if ms >= size), f"{ms} ms")
