"""``python -m benchmarks.round_trips``: Redis round trips, queries and questions of rights of each kind of request.

Counts, no times: the same on every machine. Requests go through the whole of Django in this process, each twice, and
the second is counted, so that what a process learns once is not. ``--label after`` writes ROUND_TRIPS.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import stage, wire

HERE = Path(__file__).parent
PAGE = HERE / "ROUND_TRIPS.md"
FIGURES = HERE / "round_trips.json"
STORES = ("engine", "throttle", "session")
EXAMPLES = HERE.parent / "examples"
SHOWN = ("engine", "throttle", "session", "commands", "sql", "rights")
ABOUT = """# Round trips

What one request costs, by kind: round trips to the engine, to limits, and to session and cache, all on Redis; the
commands in them; queries of SQL; and how often the right to fire or to operate was asked for. Written by
`python -m benchmarks.round_trips --label after`; `5 → 1` is before and after the path to an effect was made one. An
operator with every right, one server, Valkey from the wheel; each request is sent twice, and the second is counted.
When somebody was last seen is noted once a minute, and not counted.
"""
DOOR = '{"initial":"shut","current":"","reason":"","map":{"shut":["open"],"open":["shut"]}}'
FIRED = {"event": "activate", "payload": {"token": "T"}}


@dataclass(frozen=True, slots=True)
class Cost:
    """``engine``, ``throttle``, ``session``: round trips, the latter with the cache; ``commands``: in all of them;
    ``sql``: queries; ``rights``: how often the right to fire or to operate was asked for."""

    status: int
    engine: int
    throttle: int
    session: int
    commands: int
    sql: int
    rights: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.round_trips", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--label", default="", help="before or after: keep the figures, and write ROUND_TRIPS.md")
    parser.add_argument("--show", metavar="KIND", help="print each round trip of one kind of request")
    given = parser.parse_args()
    with stage.server(given.url) as url, _site(url):
        found = measure(given.show)
    for name, cost in found.items():
        figures = "  ".join(f"{key} {count}" for key, count in asdict(cost).items() if key != "status")
        print(f"{name:24} {cost.status}  {figures}")
    if given.label:
        kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        kept[given.label] = {name: asdict(cost) for name, cost in found.items()}
        FIGURES.write_text(json.dumps(kept, indent=1) + "\n")
        PAGE.write_text(_table(kept))


@contextlib.contextmanager
def _site(url: str) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="signalbox-bench-site-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings", "REDIS_URL": url, "SIGNALBOX_PREFIX": stage.PREFIX,
            "SIGNALBOX_HOME": folder, "DATABASE_URL": "", "CACHE_URL": "", "DJANGO_ALLOWED_HOSTS": "testserver",
            "SIGNALBOX_FIRE_RATE": "1000/m",
        }  # fmt: skip
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        settings.ALLOWED_HOSTS = ["*"]
        call_command("migrate", verbosity=0)
        yield


def measure(show: str | None = None) -> dict[str, Cost]:
    scene = Scene()
    found: dict[str, Cost] = {}
    for name, send in scene.requests().items():
        send()
        with _counted() as count:
            status = send()
        found[name] = count(status)
        if show == name:
            for trip in count.traffic.trips:
                print([" ".join(command)[:100] for command in trip])
    return found


class _Count:
    def __init__(self, traffic: wire.Traffic) -> None:
        self.traffic = traffic
        self.sql = self.rights = 0

    def __call__(self, status: int) -> Cost:
        trips = {store: len(self.traffic.of(store)) for store in wire.STORES}
        session = trips["session"] + trips["cache"]
        return Cost(
            status, trips["engine"], trips["throttle"], session, len(self.traffic.commands), self.sql, self.rights
        )


@contextlib.contextmanager
def _counted() -> Iterator[_Count]:
    from django.db import connection

    from machines.access import permissions

    with wire.recorded() as traffic:
        count, held = _Count(traffic), permissions._held

        def query(execute: Callable[..., Any], *args: Any) -> Any:
            count.sql += 1
            return execute(*args)

        def asked(user: Any, right: str) -> Any:
            count.rights += right in ("fire", "operate")
            return held(user, right)

        permissions._held = asked
        try:
            with connection.execute_wrapper(query):
                yield count
        finally:
            permissions._held = held


class Scene:
    """An operator with every right, three machines, instances, a job, a request that waits, and an SM key."""

    def __init__(self) -> None:
        from django.contrib.auth import get_user_model
        from django.contrib.auth.models import Permission
        from django.test import Client

        from machines.access import tokens
        from machines.access.permissions import RIGHTS
        from machines.catalog import publishing
        from machines.connections import get_engine
        from machines.engine import sm_commands

        names = [permission.partition(".")[2] for permission in RIGHTS.values()]
        user = get_user_model().objects.create_user("olga")
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        self.client = Client()
        self.client.force_login(user)
        self.token = tokens.make(user, "round trips", RIGHTS)[1]
        self.engine = engine = get_engine()
        for name in ("activation", "new_device", "delivery"):
            publishing.publish(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")), user=user)
        for number in range(20):
            engine.create("activation", f"a-{number}")
        self.device = engine.create("new_device", "d-1")
        engine.create("delivery", "o-1")
        self.spare = [engine.create("activation", f"f-{number}").id for number in range(40)]
        sm_commands.call(engine.client, "SM.SET", "bench:sm", DOOR)
        self.number = 0

    def requests(self) -> dict[str, Callable[[], int]]:
        of = "/machines/activation"
        job = self.device.jobs[0]
        pages = {
            "overview": "/", "machine": f"{of}/", "instance list": f"{of}/instances/",
            "machine, searched": f"{of}/?older=1s", "instance": f"{of}/instances/a-1/",
            "instance with work": "/machines/new_device/instances/d-1/",
            "repair form": f"{of}/instances/a-1/force/", "queues": "/queues/",
            "queue": "/queues/new_device/todo/", "job": f"/jobs/new_device/{job}/",
            "workers": "/workers/", "audit": "/audit/", "approvals": "/approvals/", "bulk new": f"{of}/bulk/",
            "SM page": "/sm/bench:sm/", "search": "/search/?q=a-1", "account": "/account/",
        }  # fmt: skip
        api = {
            "API machines": "/machines", "API list": "/machines/activation/instances",
            "API get": "/machines/activation/instances/a-1",
            "API history": "/machines/activation/instances/a-1/history",
            "API queues": "/queues", "API workers": "/workers",
        }  # fmt: skip
        found = {name: self._get(path) for name, path in pages.items()}
        found |= {name: self._api(path) for name, path in api.items()}
        return found | {
            "fire, POST": self._fire, "fire, POST and answer": self._fire_and_follow, "fire, refused": self._refused,
            "repair, POST": self._repair, "create, POST": self._create, "API fire": self._api_fire,
            "API create": self._api_create, "API explain": self._api_explain,
        }  # fmt: skip

    def _get(self, path: str) -> Callable[[], int]:
        return lambda: self.client.get(path).status_code

    def _api(self, path: str) -> Callable[[], int]:
        return lambda: self.client.get(f"/api/v1{path}", headers=self._shown()).status_code

    def _shown(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def _sent(self, id: str, event: str = "activate", **fields: str) -> tuple[str, dict[str, str]]:
        self.number += 1
        sent = (
            {"event": event, "key": f"k-{self.number}", "reason": "", "expect": "1", "definition": "1"}
            | fields
            | {"payload-token": "T"}
        )
        return f"/machines/activation/instances/{id}/fire/", sent

    def _fire(self) -> int:
        return self.client.post(*self._sent(self.spare.pop())).status_code

    def _fire_and_follow(self) -> int:
        return self.client.post(*self._sent(self.spare.pop()), follow=True).status_code

    def _refused(self) -> int:
        return self.client.post(*self._sent(self.spare.pop(), "entitle")).status_code

    def _repair(self) -> int:
        self.number += 1
        sent = {"reason": "a bench", "expect": "1", "key": f"r-{self.number}", "sure": "on", "state": "Active"}
        return self.client.post(f"/machines/activation/instances/{self.spare.pop()}/force/", sent).status_code

    def _create(self) -> int:
        self.number += 1
        sent = {"id": f"c-{self.number}", "key": f"c-{self.number}", "reason": ""}
        return self.client.post("/machines/activation/create/", sent).status_code

    def _api_fire(self) -> int:
        return self._api_post(f"/machines/activation/instances/{self.spare.pop()}/events", FIRED)

    def _api_create(self) -> int:
        self.number += 1
        return self._api_post("/machines/activation/instances", {"id": f"x-{self.number}"})

    def _api_explain(self) -> int:
        return self._api_post("/machines/activation/instances/a-1/explanations", FIRED)

    def _api_post(self, path: str, body: dict[str, Any]) -> int:
        text = json.dumps(body)
        answer = self.client.post(f"/api/v1{path}", text, content_type="application/json", headers=self._shown())
        return answer.status_code


def _table(kept: dict[str, dict[str, dict[str, int]]]) -> str:
    """Before and after side by side: ``5 → 1``."""
    head = "| request | engine | throttle | session, cache | commands | SQL | fire, operate asked |"
    lines = [ABOUT, head, "|---|---|---|---|---|---|---|"]
    columns = [kept[label] for label in ("before", "after") if label in kept]
    for name in columns[-1]:
        rows = [column[name] for column in columns if name in column]
        cells = [" → ".join(dict.fromkeys(str(row[key]) for row in rows)) for key in SHOWN]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
