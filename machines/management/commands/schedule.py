"""``python manage.py schedule``: lists, makes, pauses, runs, backfills and removes schedules."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.connections import get_engine
from machines.engine.errors import SignalboxError
from machines.management.verbs import add_verb, add_verbs
from machines.people.actor import Actor
from machines.schedules import Row, describe_run, describe_time, queries
from machines.schedules import actions as schedules
from machines.schedules.declarations import sync_code

CHANGES = ("pause", "resume", "take_over", "run")
ONE = ("show", "next", "history", "pause", "resume", "take-over", "run", "backfill", "remove")

VERBS = {
    "list": "print every schedule with its next run",
    "show": "print one schedule",
    "next": "print the next planned times",
    "history": "print the runs, newest first",
    "add": "make or change the schedules of a JSON file: one, or a list",
    "pause": "nothing is due until it is resumed",
    "resume": "go on from now",
    "take-over": "have it run in your name, and go on",
    "run": "run it once now",
    "backfill": "run each occurrence of a range of the past",
    "remove": "remove it with its history",
    "sync": "make the schedules that the apps declare",
}


class Command(BaseCommand):
    help = "Lists, makes, pauses, runs, backfills and removes schedules. FILE may be - for standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = add_verbs(parser)
        found = {name: add_verb(self, verbs, name, about) for name, about in VERBS.items()}
        for verb, adding in found.items():
            adding.add_argument("--json", action="store_true", help="print JSON")
            if verb in ONE:
                adding.add_argument("name", metavar="NAME")
            if verb in ("add", "pause", "resume", "take-over", "run", "backfill", "remove"):
                adding.add_argument("--reason", default="", help="for the audit and the history")
        found["list"].add_argument("--machine", help="those that act on this machine")
        for verb in ("next", "history"):
            found[verb].add_argument("--count", type=int, default=5 if verb == "next" else 20, metavar="N")
        found["add"].add_argument("file", metavar="FILE")
        found["add"].add_argument("--check", action="store_true", help="store nothing; print the next planned times")
        for name in ("start", "end"):
            found["backfill"].add_argument(name, metavar=name.upper(), help="ISO 8601, in the zone of the schedule")
        found["remove"].add_argument(
            "--declared", action="store_true", help="also one that a module declared which is gone"
        )

    def handle(self, *, verb: str, **given: Any) -> None:
        try:
            verb = verb.replace("-", "_")
            run = partial(self._change, verb=verb) if verb in CHANGES else getattr(self, f"_{verb}")
            found, lines = run(Actor.console(), **given)
        except SignalboxError as error:
            raise CommandError(f"{error} ({error.code})") from error
        self.stdout.write(json.dumps(found, indent=2) if given["json"] else "\n".join(lines))
        if verb == "sync" and found["refused"]:
            sys.exit(1)

    # Verbs: what is printed as JSON, and as lines

    def _list(self, actor: Actor, machine: str | None, **_: Any) -> tuple[Any, list[str]]:
        rows = queries.list_schedules(actor, machine=machine)
        return [row.as_dict() for row in rows], [_line(row) for row in rows] or ["no schedules"]

    def _show(self, actor: Actor, name: str, **_: Any) -> tuple[Any, list[str]]:
        found = queries.get(actor, name).as_dict()
        return found, [json.dumps(found, indent=2)]

    def _next(self, actor: Actor, name: str, count: int, **_: Any) -> tuple[Any, list[str]]:
        zone = queries.get(actor, name).schedule.zone
        times = [describe_time(at, zone) for at in queries.list_next(actor, name, max(1, count))]
        return times, times or ["none"]

    def _history(self, actor: Actor, name: str, count: int, **_: Any) -> tuple[Any, list[str]]:
        zone = queries.get(actor, name).schedule.zone
        runs = [describe_run(run, zone) for run in queries.history(actor, name, max(1, count))]
        return runs, [_describe(run) for run in runs] or ["no runs"]

    def _add(self, actor: Actor, file: str, reason: str, check: bool, **_: Any) -> tuple[Any, list[str]]:
        documents = _read(file)
        if check:
            checked = [queries.preview(actor, document) for document in documents]
            found = [
                {"name": one.name, "next": [describe_time(at, one.zone) for at in times]} for one, times in checked
            ]
            return found, [f"{one['name']}: {', '.join(one['next'])}" for one in found]
        rows = [schedules.put(actor, document, reason=reason) for document in documents]
        return [row.as_dict() for row in rows], [_line(row) for row in rows]

    def _change(self, actor: Actor, *, verb: str, name: str, reason: str, **_: Any) -> tuple[Any, list[str]]:
        row = getattr(schedules, verb)(actor, name, reason=reason)
        return row.as_dict(), [_line(row)]

    def _backfill(self, actor: Actor, name: str, start: str, end: str, reason: str, **_: Any) -> tuple[Any, list[str]]:
        count = schedules.backfill(actor, name, start, end, reason=reason)
        return {"name": name, "count": count}, [f"{name}: {count} occurrences are backfilled"]

    def _remove(self, actor: Actor, name: str, reason: str, declared: bool, **_: Any) -> tuple[Any, list[str]]:
        schedules.remove(actor, name, reason=reason, declared=declared)
        return {"name": name}, [f"{name}: removed"]

    def _sync(self, _: Actor, **__: Any) -> tuple[Any, list[str]]:
        report = sync_code(get_engine())
        refused = {name: str(error) for name, error in report.refused.items()}
        found = {"put": report.put, "unchanged": report.unchanged, "removed": report.removed, "refused": refused}
        lines = [f"{name}: made" for name in report.put] + [f"{name}: removed" for name in report.removed]
        return found, [*lines, *refused.values()] or ["nothing to do"]


def _read(file: str) -> list[Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = json.loads(text)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file} is no JSON: {error}") from error
    return found if isinstance(found, list) else [found]


def _line(row: Row) -> str:
    following = "" if row.next is None else f", next {describe_time(row.next, row.schedule.zone)}"
    last = f", last {row.last['o']}" if row.last else ""
    return f"{row.name}: {row.state}, {row.schedule.does} on {row.schedule.machine}{following}{last}"


def _describe(run: dict[str, Any]) -> str:
    led = run["led"]
    outcome = f" {led['kind']} {led['id']}" if led else f" {run['error']}" if run["error"] else ""
    number = f" {run['count']}" if run["outcome"] == "missed" else ""
    by = f" by {run['by']}" if run["by"] else ""
    return f"{run['planned']}  {run['why']}{by}  {run['outcome']}{number}{outcome}"
