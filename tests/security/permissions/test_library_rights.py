# ruff: noqa: F811  fixtures of the neighbour
"""The functions library is the deployment account's alone: no other may change it, all say which command to run, and go
on by themselves once it was run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from django.core.cache import cache
from django.core.checks import run_checks
from django.test import Client

from dashboard.serving.checks.redis_accounts import ACCOUNTS
from dashboard.site.stores import SESSION_KEYS
from machines import connections
from machines.cli import main
from machines.engine import AsyncEngine, Engine, LibraryNotLoaded
from machines.engine.connection import library
from machines.engine.connection.library_loader import read_held
from tests.engine.builders import door
from tests.installation.processes import ROOT, eventually
from tests.worker import builders

from .test_acl import PREFIX, Place, as_account, place  # noqa: F401  fixtures

LOAD = "signalbox library load"
OLDER = library.text().replace(f"name={library.NAME}\n", f"name={library.FAMILY}\n").replace(
    f"return {{ {library.RELEASE}, ", f"return {{ {library.RELEASE - 1}, "
)  # fmt: skip
STATES = pytest.mark.parametrize("there", ["", OLDER], ids=["no library", "an older one"])


@pytest.fixture
def without(place: Place, as_account, monkeypatch: pytest.MonkeyPatch):
    """Leaves the server without a library, or with an older one."""

    def leave(there: str) -> None:
        place.owner.function_flush()
        if there:
            place.owner.function_load(there)
        monkeypatch.setattr(connections, "_made", None)  # as in a process that starts now

    return leave


def load_by_command(place: Place, tmp_path: Path, capsys) -> str:
    """Run the command as a deployment does, with one secret and nothing else."""
    secret = tmp_path / "redis_url_deploy"
    secret.write_text(place.url("deploy"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
        patch.delenv("REDIS_URL", raising=False)
        patch.setenv("REDIS_URL_FILE", str(secret))
        patch.setenv("SIGNALBOX_PREFIX", PREFIX)
        assert main(["library", "load"]) == 0
    return str(capsys.readouterr().out)


def examples() -> dict[str, list[str]]:
    """A whole command for each that a step may run, as ``sb_permitted`` has them."""
    text = library.function_paths()["sb_permitted"].read_text(encoding="utf-8")
    rows = [row.split() for row in re.findall(r"'([A-Z][^']+)'", text[: text.index("CONTAINERS")])]
    return {"|".join(row[:2]).lower() if row[0] in ("XGROUP", "XINFO") else row[0].lower(): row for row in rows}


def test_no_account_but_one_may_change_the_library(place: Place, as_account) -> None:
    for name in ACCOUNTS.keys() - {"deploy"}:
        with redis.Redis.from_url(place.url(name)) as client:
            for words in (
                ("FUNCTION", "LOAD", "REPLACE", library.text()),
                ("FUNCTION", "DELETE", library.NAME),
                ("FUNCTION", "FLUSH"),
                ("FUNCTION", "RESTORE", "x"),
                ("FUNCTION", "DUMP"),
                ("EVAL", "return 1", "0"),
                ("SCRIPT", "LOAD", "return 1"),
            ):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*words)
        with pytest.raises(LibraryNotLoaded, match=LOAD):
            as_account(name).load_library()
    assert read_held(place.owner).is_ours


@pytest.mark.django_db
def test_a_worker_reads_no_session_by_any_command_that_it_has(place: Place, as_account, user_of) -> None:
    as_account("web")
    visitor = Client()
    visitor.force_login(user_of("supervisor", "ann"))
    cookie = visitor.session.session_key
    key = cache.make_key(SESSION_KEYS + cookie)
    assert place.owner.exists(key), "the session is on this server"
    place.denied()
    known, granted = examples(), set(ACCOUNTS["worker"].commands)
    assert known.keys() <= granted
    with redis.Redis.from_url(place.url("worker"), decode_responses=True) as worker:
        for words in (words for words in known.values() if "k" in words):
            with pytest.raises(redis.exceptions.NoPermissionError):
                worker.execute_command(*(key if word == "k" else word for word in words))
        for function in library.function_paths():
            with pytest.raises(redis.exceptions.NoPermissionError):
                worker.execute_command("FCALL", function, 1, key, key)
        keyless = granted - {name for name, words in known.items() if "k" in words}
        assert keyless == {
            "fcall", "fcall_ro", "info", "ping", "scan", "spublish", "ssubscribe", "sunsubscribe", "time", "wait",
        } - known.keys() | {name for name, words in known.items() if "k" not in words}  # fmt: skip
        names = list(worker.scan_iter(count=1000))
        assert key in names, "it may list the names"
        assert not any(cookie in name for name in names), "and none of them is a cookie"
    assert visitor.get("/account/").status_code == 200


def test_the_deployment_account_loads_and_does_nothing_else(
    place: Place, as_account, without, tmp_path, capsys
) -> None:
    as_account("engine").publish(door())
    without("")
    place.denied()
    assert load_by_command(place, tmp_path, capsys) == (
        f"the server: the library of release {library.RELEASE} is loaded, there was none\n"
    )
    assert (
        load_by_command(place, tmp_path, capsys) == f"the server: the library of release {library.RELEASE} is there\n"
    )
    without(OLDER)
    assert f"in place of that of release {library.RELEASE - 1}" in load_by_command(place, tmp_path, capsys)
    assert [row[1] if isinstance(row, list) else row["library_name"] for row in place.owner.function_list()] == [
        library.NAME
    ]
    assert place.denied() == set()
    with redis.Redis.from_url(place.url("deploy")) as client:
        for words in (
            ("HGETALL", "sb:machines"),
            ("GET", "sb-web:1:x"),
            ("SCAN", "0"),
            ("FCALL", "sb_counts", 1, "sb:{door:0}"),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*words)


@STATES
@pytest.mark.django_db
def test_the_site_says_which_command_to_run_and_goes_on_after_it(
    place: Place, as_account, without, user_of, there, tmp_path, capsys
) -> None:  # fmt: skip
    as_account("engine").publish(door())
    without(there)
    engine = as_account("web")
    visitor = Client(raise_request_exception=False)
    visitor.force_login(user_of("supervisor", "ann"))
    with pytest.raises(LibraryNotLoaded, match=LOAD) as caught:
        engine.get("door", "north")
    assert caught.value.code == "SB515"
    assert (f"of release {library.RELEASE - 1}" in str(caught.value)) == bool(there)
    ready = visitor.get("/readyz")
    assert (ready.status_code, ready.json()["library"], ready.json()["run"]) == (503, "SB515", LOAD)
    assert visitor.get("/healthz?process").status_code == 200, "no reason to restart it"
    (found,) = [one for one in run_checks(tags=["signalbox"]) if one.id == "signalbox.W011"]
    assert LOAD in found.msg
    assert [one.id for one in run_checks(tags=["signalbox"]) if one.is_serious()] == [], "it starts, and waits"
    page = visitor.get("/machines/door/", headers={"Accept": "text/html"})
    assert (page.status_code, LOAD in page.content.decode(), "does not answer" in page.content.decode()) == (
        503,
        True,
        False,
    )
    problem = visitor.get("/api/v1/machines/door/instances/north").json()
    assert (problem["code"], LOAD in problem["detail"]) == ("SB515", True)

    load_by_command(place, tmp_path, capsys)
    assert engine.create("door", "north").state == "Shut"
    assert visitor.get("/readyz").json()["library"] == "ok"
    assert visitor.get("/machines/door/", headers={"Accept": "text/html"}).status_code == 200


@pytest.mark.faults
@STATES
def test_a_worker_says_which_command_to_run_and_goes_on_after_it(
    place: Place, as_account, without, there, tmp_path: Path, capsys
) -> None:  # fmt: skip
    engine = as_account("engine")
    engine.publish(builders.errand(src="quick"))
    engine.create("errand", "early")
    without(there)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.worker.settings", "REDIS_URL": place.url("worker"),
        "SIGNALBOX_PREFIX": PREFIX, "DATABASE_URL": f"sqlite:///{tmp_path}/worker.sqlite3",
    }  # fmt: skip
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "worker"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        eventually(lambda: f"run `{LOAD}`" in log.read_text(), "it says which command to run")
        load_by_command(place, tmp_path, capsys)
        eventually(lambda: engine.counts("errand")["done"] == 1, "it takes the job that waited")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)
    assert "Traceback" not in log.read_text(), log.read_text()


def test_one_account_loads_by_itself(own_server) -> None:
    with redis.Redis.from_url(own_server.url) as client:
        client.function_load(OLDER)
    engine = Engine.from_url(own_server.url)
    engine.publish(door())
    assert read_held(engine.client).is_ours
    engine.client.close()


async def test_one_account_loads_by_itself_from_an_event_loop(own_server) -> None:
    with redis.Redis.from_url(own_server.url, decode_responses=True) as client:
        client.function_load(OLDER)
        async with AsyncEngine.from_url(own_server.url) as engine:
            await engine.publish(door())
        assert read_held(client).is_ours
