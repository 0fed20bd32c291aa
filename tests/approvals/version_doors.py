"""Every operation on the versions of a machine by every door, tried by one person alone, or by a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from django.apps import AppConfig, apps
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from machines.catalog import publishing
from machines.catalog.version_rules import OPERATIONS
from machines.catalog.versions import drafts
from machines.engine import Engine
from machines.instances import plans
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS
from tests.instances.bulks.builders import work_off

WHY = "one person wants it"
DOORS = ("page", "api", "command", "schedule", "bulk")


class Try(NamedTuple):
    """One attempt: who, on which machine, and where files may be written."""

    engine: Engine
    user: Any
    machine: str
    folder: Path
    approval: tuple[str, ...] = ()

    @property
    def next(self) -> dict[str, Any]:
        """The definition that is to be published, with the ``approval`` of the target."""
        return definition(self.machine, NEXT, *self.approval)

    @property
    def actor(self) -> Actor:
        return Actor(self.user, "test")

    def post(self, name: str, *arguments: Any, **sent: Any) -> None:
        """Send the form of a page."""
        client = Client()
        client.force_login(self.user)
        answer = client.post(reverse(f"signalbox:{name}", args=arguments), {"reason": WHY, **sent})
        assert answer.status_code in (200, 302, 409), answer.content

    def call(self, path: str, method: str = "post", **body: Any) -> dict[str, Any]:
        """Send a request to the API; return the answer."""
        _, secret = tokens.make(self.user, "a test", tuple(RIGHTS))
        send = getattr(Client(headers={"Authorization": f"Bearer {secret}"}), method)
        answer = send(f"/api/v1/{path}", json.dumps({"reason": WHY, **body}), content_type="application/json")
        assert answer.status_code in (200, 201, 202, 409), answer.content
        found: dict[str, Any] = answer.json()
        return found

    def run(self, *words: Any, **options: Any) -> str:
        """Run a verb of the command; return what it printed."""
        out = StringIO()
        call_command("machine", *map(str, words), stdout=out, stderr=StringIO(), **options)
        return out.getvalue()

    def write(self, name: str, document: object) -> Path:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(json.dumps(document))
        return file


def definition(machine: str, number: int, *approval: str) -> dict[str, Any]:
    states = {"A": {"on": {"go": "B"}}, "B": {}, **{f"S{n}": {} for n in range(number)}}
    return {"id": machine, "initial": "A", "states": states, **({"approval": list(approval)} if approval else {})}


NEXT = 9  # the version that is to be published


# What each operation finds, made by a program: version 1 is older, version 2 is current.


def _roll_out(engine: Engine, machine: str, *approval: str) -> None:
    engine.publish(definition(machine, 3, *approval), rollout=5)


ARRANGE: dict[str, Callable[[Engine, str], object]] = {
    "version.unpin": lambda engine, machine: engine.pin(machine, 1),
    "version.allow": lambda engine, machine: engine.withdraw_version(machine, 1),
    "rollout.set": lambda engine, machine: engine.start_rollout(machine, 1, 5),
    "rollout.finish": lambda engine, machine: engine.start_rollout(machine, 1, 5),
    "rollout.stop": lambda engine, machine: engine.start_rollout(machine, 1, 5),
}


def _publish_by_page(one: Try) -> None:
    draft = drafts.save(one.actor, one.machine, json.dumps(one.next))
    one.post("draft-publish", one.machine, draft.pk, expect=draft.revision)


def _publish_by_api(one: Try) -> None:
    one.call("machines", definition=one.next)
    with suppress(AssertionError):  # the same as a draft, which files a request
        draft = drafts.save(one.actor, one.machine, json.dumps(one.next))
        one.call(f"drafts/{draft.pk}/publish")


def _publish_by_command(one: Try) -> None:
    one.run("publish", one.write("next.json", one.next), notes=WHY)


def _import_by_command(one: Try) -> None:
    """An export of the machine with its instances, which is read back."""
    file = one.folder / f"{one.machine}.sb"
    one.run("export", one.machine, file)
    one.run("import", file)


def _sync_by_command(one: Try) -> None:
    app = f"app_{one.machine}"
    one.write(f"{app}/statemachines/{one.machine}.json", one.next)
    (one.folder / app / "__init__.py").touch()
    sys.path.insert(0, str(one.folder))
    try:
        apps.app_configs[app] = AppConfig(app, __import__(app))
        one.run("sync", "--app", app)
    finally:
        sys.path.remove(str(one.folder))
        apps.app_configs.pop(app, None)
        sys.modules.pop(app, None)


def _plan(one: Try) -> Any:
    return one.engine.plan(one.machine, 1, from_versions=[2])


def _store_move(one: Try) -> str:
    """A plan whose bulk action is previewed; the id of that."""
    row = plans.store(one.actor, _plan(one))
    bulk = plans.move(one.actor, row.pk, reason=WHY).bulk
    work_off(one.engine)
    return bulk


def _migrate_by_page(one: Try) -> None:
    one.post("bulk-run", _store_move(one))
    work_off(one.engine)


def _migrate_by_api(one: Try) -> None:
    one.call(f"bulks/{_store_move(one)}/run")
    work_off(one.engine)


def _migrate_by_bulk(one: Try) -> None:
    made = one.call(f"machines/{one.machine}/bulks", action="migrate", plan=_plan(one).as_dict())
    work_off(one.engine)
    one.call(f"bulks/{made['id']}/run")
    work_off(one.engine)


def _migrate_by_command(one: Try) -> None:
    one.run("migrate", one.machine, "--plan", one.write("plan.json", _plan(one).as_dict()), "--reason", WHY)


def _page(name: str, **sent: Any) -> Callable[[Try], None]:
    return lambda one: one.post(name, one.machine, **sent)


def _api(path: str, method: str = "post", **body: Any) -> Callable[[Try], object]:
    return lambda one: one.call(f"machines/{one.machine}/{path}", method, **body)


TABLE: dict[str, dict[str, Callable[[Try], object]]] = {
    "publish": {
        "page": _publish_by_page,
        "api": _publish_by_api,
        "command": _publish_by_command,
    },
    "sync": {"command": _sync_by_command},
    "import": {"command": _import_by_command},
    "version.pin": {"page": _page("version-pin", version=1), "api": _api("pin", version=1)},
    "version.unpin": {"page": _page("version-pin", do="unpin"), "api": _api("pin", version=None)},
    "version.withdraw": {
        "page": _page("version-withdraw", version=1),
        "api": _api("versions/2/withdraw", instead=1),
    },
    "version.allow": {
        "page": _page("version-withdraw", version=1, do="allow"),
        "api": _api("versions/1/withdraw", withdrawn=False),
    },
    "version.policy": {
        "page": _page("version-policy", actions=[]),
        "api": _api("version-policy", "put", actions=[]),
    },
    "rollout.start": {"api": _api("rollout", version=1, percent=5)},
    "rollout.set": {"page": _page("version-rollout", do="set", percent=50), "api": _api("rollout", "put", percent=50)},
    "rollout.finish": {"page": _page("version-rollout", do="finish"), "api": _api("rollout/finish")},
    "rollout.stop": {"page": _page("version-rollout", do="stop"), "api": _api("rollout/stop")},
    "migrate": {
        "page": _migrate_by_page,
        "api": _migrate_by_api,
        "bulk": _migrate_by_bulk,
        "command": _migrate_by_command,
    },
}
"""Operation -> door -> how it is tried. A door that is not there does not have the operation."""


def arrange(engine: Engine, machine: str, operation: str, approvals: dict[str, tuple[str, ...]]) -> None:
    """Make what the operation finds. ``approvals``: of the version that is the ``target``, ``current``, rolled out
    (``rollout``) or ``behind`` a pin; the last two are there only if they are named."""
    engine.publish(definition(machine, 1, *approvals.get("target", ())))
    engine.publish(definition(machine, 2, *approvals.get("current", ())))
    engine.create(machine, "one")
    if operation in ARRANGE:
        ARRANGE[operation](engine, machine)
    if "rollout" in approvals:
        _roll_out(engine, machine, *approvals["rollout"])
    if "behind" in approvals:
        engine.pin(machine, 2)
        engine.publish(definition(machine, 4, *approvals["behind"]))
    publishing.adopt(machine)


assert TABLE.keys() == OPERATIONS.keys(), "an operation is not in the table: say by which doors it is done"
