"""/readyz: 200 only while this process can serve, and which part it is that cannot."""

import asyncio
import contextlib
import signal

import pytest
import redis
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from dashboard.live.hub import hub as hubs
from dashboard.serving import health, server, shutdown
from tests.configuration import configure

READY = dict.fromkeys(("redis", "cache", "sessions", "database", "migrations", "library", "live", "process"), "ok")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(health, "_migrated", False)
    yield
    shutdown.clear()


def answer():
    response = Client().get("/readyz")
    return response.status_code, response.json()


def down(**parts):
    return 503, {"status": "down", **READY, **parts}


def test_it_is_ready_when_everything_is(engine, db):
    assert answer() == (200, {"status": "ready", **READY})


def test_a_migration_that_is_not_applied_is_said(engine, db):
    MigrationRecorder(connection).migration_qs.filter(app="machines").delete()
    assert answer() == down(migrations="pending")


def test_a_library_that_is_not_there_is_loaded_and_one_that_cannot_be_is_said(own_server, prefix, settings, db):
    configure(settings, REDIS_URL=own_server.url)
    assert answer()[0] == 200  # nothing had loaded it
    with redis.Redis.from_url(own_server.url) as client:
        assert b"sb_library" in str(client.function_list()).encode()
        client.function_flush()
        client.execute_command("ACL", "SETUSER", "default", "-function")
        assert answer() == down(library="SB515", run="signalbox library load")
    own_server.stop()
    assert answer() == down(redis="SB500", library="SB500")


def test_a_hub_that_has_lost_redis_is_said_and_one_that_nobody_watches_is_not(engine, db):
    hub = hubs.Hub("unix:///nonexistent/none.sock", engine.keys, hubs.limits())
    assert hub.well

    async def lost():
        hub.enter()
        deadline = asyncio.get_running_loop().time() + 30
        while hub.well and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  # it tells its sockets alone
            await asyncio.sleep(0.01)

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        hubs.hub.kept[loop] = hub
        loop.run_until_complete(lost())
        assert answer() == down(live="stale")
        for outbox in list(hub._outboxes):
            loop.run_until_complete(hub.exit(outbox))
        assert answer()[0] == 200


def test_a_hub_whose_loop_was_closed_under_its_sockets_is_nobodys(engine, db):
    hub = hubs.Hub("unix:///nonexistent/none.sock", engine.keys, hubs.limits())
    loop = asyncio.new_event_loop()
    hubs.hub.kept[loop] = hub
    hub._state = hubs.STALE
    hub._task = loop.create_future()
    before = hubs.sockets()
    hub._outboxes.add(None)
    assert hubs.sockets() == before + 1
    assert answer() == down(live="stale")
    loop.close()
    assert hubs.sockets() == before
    assert answer()[0] == 200


def test_a_process_that_was_told_to_stop_is_not_ready(engine, db):
    server.server().handle_exit(signal.SIGTERM, None)
    assert answer() == down(process="stopping")
    assert Client().get("/healthz").status_code == 200
