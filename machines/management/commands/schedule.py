"""``python manage.py schedule``: lists, makes and removes schedules. Pages and API do the rest."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.connections import get_engine
from machines.engine.errors import SignalboxError
from machines.management.verbs import add_verb, add_verbs, read_json
from machines.people.actor import Actor
from machines.schedules import Row, describe_time, queries
from machines.schedules import actions as schedules
from machines.schedules.declarations import sync_code

VERBS = {
    "list": "print every schedule with its next run",
    "add": "make or change the schedules of a JSON file: one, or a list",
    "take-over": "have it run in your name, and go on",
    "remove": "remove it with its history",
    "sync": "make the schedules that the apps declare",
}


class Command(BaseCommand):
    help = "Lists, makes and removes schedules. FILE may be - for standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = add_verbs(parser)
        found = {name: add_verb(self, verbs, name, about) for name, about in VERBS.items()}
        for verb, adding in found.items():
            adding.add_argument("--json", action="store_true", help="print JSON")
            if verb in ("take-over", "remove"):
                adding.add_argument("name", metavar="NAME")
            if verb in ("add", "take-over", "remove"):
                adding.add_argument("--reason", default="", help="for the audit and the history")
        found["list"].add_argument("--machine", help="those that act on this machine")
        found["add"].add_argument("file", metavar="FILE")
        found["add"].add_argument("--check", action="store_true", help="store nothing; print the next planned times")
        found["remove"].add_argument(
            "--declared", action="store_true", help="also one that a module declared which is gone"
        )

    def handle(self, *, verb: str, **given: Any) -> None:
        try:
            verb = verb.replace("-", "_")
            found, lines = getattr(self, f"_{verb}")(Actor.console(), **given)
        except SignalboxError as error:
            raise CommandError(f"{error} ({error.code})") from error
        self.stdout.write(json.dumps(found, indent=2) if given["json"] else "\n".join(lines))
        if verb == "sync" and found["refused"]:
            sys.exit(1)

    # Verbs: what is printed as JSON, and as lines

    def _list(self, actor: Actor, machine: str | None, **_: Any) -> tuple[Any, list[str]]:
        rows = queries.list_schedules(actor, machine=machine)
        return [row.as_dict() for row in rows], [_line(row) for row in rows] or ["no schedules"]

    def _add(self, actor: Actor, file: str, reason: str, check: bool, **_: Any) -> tuple[Any, list[str]]:
        found = read_json(file)
        documents = found if isinstance(found, list) else [found]
        if check:
            checked = [queries.preview(actor, document) for document in documents]
            listed = [
                {"name": one.name, "next": [describe_time(at, one.zone) for at in times]} for one, times in checked
            ]
            return listed, [f"{one['name']}: {', '.join(one['next'])}" for one in listed]
        rows = [schedules.put(actor, document, reason=reason) for document in documents]
        return [row.as_dict() for row in rows], [_line(row) for row in rows]

    def _take_over(self, actor: Actor, name: str, reason: str, **_: Any) -> tuple[Any, list[str]]:
        row = schedules.take_over(actor, name, reason=reason)
        return row.as_dict(), [_line(row)]

    def _remove(self, actor: Actor, name: str, reason: str, declared: bool, **_: Any) -> tuple[Any, list[str]]:
        schedules.remove(actor, name, reason=reason, declared=declared)
        return {"name": name}, [f"{name}: removed"]

    def _sync(self, _: Actor, **__: Any) -> tuple[Any, list[str]]:
        report = sync_code(get_engine())
        refused = {name: str(error) for name, error in report.refused.items()}
        found = {"put": report.put, "unchanged": report.unchanged, "removed": report.removed, "refused": refused}
        lines = [f"{name}: made" for name in report.put] + [f"{name}: removed" for name in report.removed]
        return found, [*lines, *refused.values()] or ["nothing to do"]


def _line(row: Row) -> str:
    following = "" if row.next is None else f", next {describe_time(row.next, row.schedule.zone)}"
    last = f", last {row.last['o']}" if row.last else ""
    return f"{row.name}: {row.state}, {row.schedule.does} on {row.schedule.machine}{following}{last}"
