"""Prepares the demo: Redis, the tables, the sample machines."""

import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import F

from dashboard.serving.checks import system_checks
from dashboard.site import home, stores
from dashboard.site.environment import of_process
from machines import mapreduce
from machines.catalog.publishing import adopt_published, prepare, publish, restore
from machines.catalog.versions import drafts as services
from machines.conf import conf
from machines.conf.project import check_migrations
from machines.conf.server import Cluster, Server
from machines.connections import get_engine
from machines.engine.errors import EngineUnavailable, NotPermitted, SignalboxError
from machines.formats import load
from machines.models import Draft, MachineVersion
from machines.people.actor import Actor
from machines.schedules import Schedules
from machines.worker.registry import discover

from .processes import DemoFailed

SAMPLES = (home.SAMPLES, Path(mapreduce.__file__).parent / "definitions")
DRAFTS = home.SAMPLES / "drafts"
NOTES = {
    "delivery": "An empty shelf is called Back-ordered, the carrier's depot and van are states of their own, the"
    " carrier has 60 s, and orders can be express.",
}
AUTHOR = Actor("shop", "demo")
SCHEDULES = home.SAMPLES / "schedules" / "samples.json"
BACKFILLED = {"fetch-prices": 16}
"""Days before the first start for which a schedule is run, so that it has a history."""


def redis(stack: ExitStack, *, cluster: bool = False) -> Server | Cluster | None:
    """Start a Valkey of our own, or a cluster, which ends with us. Return None if another Redis was named. Raises
    DemoFailed unless the server answers and is fit for us."""
    server: Server | Cluster | None = None
    if not of_process().secret("REDIS_URL"):
        server = stack.enter_context(_make_cluster() if cluster else Server(conf.HOME / "valkey"))
        _point_at(server.url)
    elif cluster:
        raise DemoFailed("REDIS_URL names a Redis already; unset it, or leave out --cluster")
    try:
        get_engine().ping()
    except NotPermitted as error:
        raise DemoFailed(str(error)) from None
    except EngineUnavailable as error:
        raise DemoFailed(f"Redis does not answer at {system_checks.hide_password(conf.REDIS_URL)}: {error}") from None
    if refusals := system_checks.refusals():
        raise DemoFailed(refusals)
    return server


def _make_cluster() -> Cluster:
    """Return a cluster with a password of its own, since its ports are open to every user of this machine."""
    folder = conf.HOME / "cluster"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "password"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24), encoding="utf-8")
    return Cluster(folder, password=file.read_text(encoding="utf-8"), persistent=True)


def _point_at(url: str) -> None:
    """Make this process, and those that it starts, use the server that has just been started."""
    os.environ["REDIS_URL"] = url
    settings.SIGNALBOX = settings.SIGNALBOX | {"REDIS_URL": url}
    if not of_process().secret("CACHE_URL"):
        settings.CACHES = stores.caches(url, conf.PREFIX)
        settings.SESSION_ENGINE = stores.session_engine(of_process().text("SIGNALBOX_SESSIONS"), url)


def database() -> str:
    """Bring the tables up to date. Return a sentence that says what that took."""
    try:
        for fault in check_migrations(None, [connection.alias]):
            raise DemoFailed(f"{fault.msg}. {fault.hint}")
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            call_command("migrate", interactive=False, verbosity=0)
    except OperationalError as error:
        raise DemoFailed(f"the database cannot be used: {str(error).strip()}") from None
    return (
        f"{connection.display_name}, {len(plan)} migrations applied"
        if plan
        else f"{connection.display_name}, up to date"
    )


def machines(folders: Sequence[Path] = SAMPLES) -> str:
    """Publish the samples, each once: one that was replaced by a newer version stays replaced. Machines that were
    published before come back into a Redis that has lost them."""
    try:
        restore()
        adopt_published({})  # which version is current may have changed while the demo was away
        files = [file for folder in folders for file in sorted(folder.glob("*.json"))]
        versions = [_publish_once(load(file.read_bytes())) for file in files]
    except SignalboxError as error:
        raise DemoFailed(f"the sample machines cannot be published: {error}") from None
    return ", ".join(f"{version.machine.name} v{version.number}" for version in versions)


def _publish_once(definition: object) -> MachineVersion:
    compiled = prepare(definition).compiled
    known = MachineVersion.objects.filter(machine__name=compiled.source["id"])
    replaced = known.filter(digest=compiled.digest).exclude(number=F("machine__current")).exists()
    current = known.filter(number=F("machine__current")).first()
    if current and replaced and current.digest != compiled.digest:
        return current
    return publish(compiled)


def drafts(folder: Path = DRAFTS) -> str:
    """Save the sample drafts, each once: one that was published or discarded does not come back. Return which are
    open."""
    try:
        for file in sorted(folder.glob("*.json")):
            if not Draft.objects.filter(machine=file.stem, author=AUTHOR.name).exists():
                text = file.read_text(encoding="utf-8")
                services.save(AUTHOR, file.stem, text, format="json", note=NOTES.get(file.stem, ""))
    except SignalboxError as error:
        raise DemoFailed(f"the sample drafts cannot be saved: {error}") from None
    return (
        ", ".join(f"{draft.machine} (draft {draft.pk})" for draft in Draft.objects.filter(state="open")) or "none open"
    )


def schedules() -> str:
    """Make the sample schedules that are not there. Says which there are."""
    discover()  # a schedule may name any handler, and no worker runs yet that would say which there are
    held = Schedules(get_engine())
    try:
        known = {row.name for row in held.find()}
        for schedule in json.loads(SCHEDULES.read_text(encoding="utf-8")):
            if schedule["name"] not in known:
                held.put(schedule, author=AUTHOR.name, reason="a sample")
                if days := BACKFILLED.get(schedule["name"]):
                    now = int(time.time())
                    held.backfill(schedule["name"], now - days * 86_400, now, by=AUTHOR.name, reason="a sample")
        return ", ".join(row.name for row in held.find()) or "none"
    except SignalboxError as error:
        raise DemoFailed(f"the sample schedules cannot be made: {error}") from None
