"""Several releases on one server: none puts an older library over a newer one, and callers see no error."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from machines.engine import Engine, errors
from machines.engine.connection import library, library_loader
from machines.engine.connection.library_loader import HeldLibrary, read_held
from tests.engine.builders import door, errand, publish

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
THIS = library.RELEASE


class Process:
    """A program of tests/engine/releases, with the engine of a release."""

    def __init__(self, program, release, *words):
        environment = os.environ | {"PYTHONPATH": str(release)}
        self.process = subprocess.Popen(
            [sys.executable, HERE / program, *map(str, words)],
            cwd=release, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def begin(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def stop(self):
        self.process.stdin.close()
        self.process.stdin = None

    def finish(self):
        said = self.process.communicate(timeout=60)[0]
        assert self.process.returncode == 0
        return json.loads(said.splitlines()[-1])


def loads(client):
    found = client.info("commandstats").get("cmdstat_function|load", {})
    return found.get("calls", 0) - found.get("failed_calls", 0)


@pytest.mark.faults
def test_a_program_of_the_release_before_gets_the_same_answers_of_this_library(before, own_server, own_engine):
    own = Process("contract.py", before, own_server.url, "old:").finish()
    assert (len(own) > 35, loads(own_engine.client)) == (True, 1)
    assert {row["error"] for row in own.values() if isinstance(row, dict) and "code" in row} == {
        "InstanceExists", "Refused", "Conflict", "UnknownEvent", "UnknownInstance", "Suspended", "LeaseLost",
    }  # fmt: skip
    own_engine.load_library()
    assert Process("contract.py", before, own_server.url, "new:").finish() == own
    assert (loads(own_engine.client), read_held(own_engine.client).is_ours) == (2, True)
    ours = Process("contract.py", ROOT, own_server.url, "this:").finish()
    assert ours.keys() == own.keys()


def roll(clients, old, new):
    """From one release to another and back, with both at work in between. Returns what each process did, and how often
    each server loaded a library."""
    first = [old("a").begin(), old("b").begin()]
    loaded = [loads(client) for client in clients]
    second = [new("c").begin(), new("d").begin()]
    others = [old("e").begin()]  # a process of the old release that starts again meanwhile
    for process in first:
        process.stop()
    back = [old("f").begin(), old("g").begin()]
    for process in [*second, *others, *back]:
        process.stop()
    return [process.finish() for process in [*first, *second, *others, *back]], [
        loads(client) - before for client, before in zip(clients, loaded, strict=True)
    ]


def check(done):
    assert [row["failed"] for row in done] == [[]] * 7
    assert all(row["done"] == row["n"] > 0 for row in done)


@pytest.mark.faults
def test_rolling_from_the_release_before_to_this_one_and_back_is_one_load_and_no_error(before, own_server, own_engine):
    done, loaded = roll(
        [own_engine.client],
        lambda name: Process("load.py", before, own_server.url, name),
        lambda name: Process("load.py", ROOT, own_server.url, name),
    )
    check(done)
    assert (loaded, read_held(own_engine.client)) == ([1], HeldLibrary(THIS, library.fingerprint()))


@pytest.mark.faults
def test_rolling_from_one_number_to_the_next_and_back_is_one_load_and_no_error(own_server, own_engine):
    done, loaded = roll(
        [own_engine.client],
        lambda name: Process("load.py", ROOT, own_server.url, name, 7),
        lambda name: Process("load.py", ROOT, own_server.url, name, 8),
    )
    check(done)
    assert (loaded, read_held(own_engine.client).number) == ([1], 8)


def as_release(number, lacks="nothing", fingerprint=None):
    """The text of this library with another number, and without one of its functions."""
    text = library.text().replace(f"return {{ {THIS}, ", f"return {{ {number}, ").replace(f"'{lacks}'", "'sb_gone'")
    return text.replace(library.fingerprint(), fingerprint or library.fingerprint())


def test_a_newer_library_stays_and_the_log_says_so_once(own_server, own_engine, caplog, monkeypatch):
    monkeypatch.setattr(library_loader, "_reported", set())  # this process may have named that release in another try
    own_engine.client.function_load(as_release(THIS + 5))
    for number in range(3):
        engine = Engine.from_url(own_server.url)
        publish(engine, door(), f"x{number}")
        engine.load_library()
        engine.require_library()
        engine.client.close()
    assert (loads(own_engine.client), read_held(own_engine.client).number) == (1, THIS + 5)
    said = [record.message for record in caplog.records if record.name == library_loader.__name__]
    assert said == [
        f"the server holds the functions library of release {THIS + 5}; this process, of release {THIS}, works with it"
    ]


def test_a_function_that_a_newer_library_lacks_is_an_error_and_no_reason_to_load(own_engine):
    own_engine.client.function_load(as_release(THIS + 6, lacks="sb_live"))
    publish(own_engine, door(), "x")
    for _ in range(2):
        with pytest.raises(errors.EngineFault, match=rf"\(release {THIS + 6}, .*lacks a function .*\(release {THIS},"):
            own_engine.counts("door")
    assert own_engine.fire("door", "x", "open").state == "Open"
    assert loads(own_engine.client) == 1


def test_ends_of_jobs_are_sent_in_full_to_a_library_that_does_not_know_the_short_form(own_engine):
    publish(own_engine, errand(), *"abc")
    for id in "abc":
        own_engine.fire("errand", id, "start")
    jobs = own_engine.take("errand", "work", "w", count=3)
    own_engine.client.function_load(library.text().replace("ARGV[2] == 'runs'", "false"), replace=True)
    first, *lost = own_engine.complete_many([(jobs[0], None), (jobs[0], None)])
    assert (first.transitions, [type(one) for one in lost]) == (["t3"], [errors.LeaseLost])
    assert [one.transitions for one in own_engine.complete_many([(job, None) for job in jobs[1:]])] == [["t3"]] * 2
    assert own_engine.counts("errand")["Done"] == 3


def test_two_states_of_one_release_do_not_fight(own_engine):
    publish(own_engine, door(), "x")
    other = as_release(THIS, lacks="sb_live", fingerprint="0123456789ab")
    own_engine.client.function_load(other, replace=True)
    assert own_engine.counts("door") == {"Shut": 1, "Open": 0}  # loaded because a function was missing
    own_engine.client.function_load(other, replace=True)
    with pytest.raises(errors.EngineFault, match="lacks a function"):
        own_engine.counts("door")
    own_engine.client.function_flush()
    assert own_engine.counts("door") == {"Shut": 1, "Open": 0}


def test_who_reads_an_old_number_and_loads_late_finds_the_newer_library(own_server, own_engine, monkeypatch):
    """The older process has read that its library is wanted; before it gets the lock, the newer one loads."""
    real = library_loader._acquire
    lock = own_engine.keys.library_lock(0)

    def overtaken(node, key, token):
        with redis.Redis.from_url(own_server.url) as client:
            client.function_load(as_release(THIS + 7), replace=True)
        return real(node, key, token)

    monkeypatch.setattr(library_loader, "_acquire", overtaken)
    publish(own_engine, door(), "x")
    assert read_held(own_engine.client).number == THIS + 7
    assert own_engine.client.exists(lock) == 0


def test_a_lock_that_is_held_is_waited_for(own_server, own_engine, monkeypatch):
    own_engine.client.set(own_engine.keys.library_lock(0), "another", px=400)
    publish(own_engine, door(), "x")
    assert read_held(own_engine.client).is_ours


@pytest.mark.cluster
def test_each_node_of_a_cluster_has_a_lock_of_its_own(nodes, prefix):
    from tests.engine.connection import clusters

    with clusters.engine_on(nodes, prefix, 6) as engine:
        for number, node in enumerate(nodes):
            with node.client() as client:
                client.function_load(as_release(THIS + number - 1), replace=True)
        loader = engine._caller._loader
        publish(engine, door(), "x")
        assert sorted(held.number for held in loader.read()) == [THIS, THIS, THIS + 1]
        engine.client.function_load(library.text(), replace=True)
        found = [loader._find_lock(client) for client in library_loader.routing.list_nodes(engine.client)]
        assert len(set(found)) == len(nodes)


@pytest.mark.cluster
def test_rolling_on_a_cluster_is_one_load_on_each_node_and_no_error(before, tmp_path, program_of_this_run):
    from tests.engine.connection import clusters

    with clusters.running(tmp_path, program_of_this_run) as nodes, contextlib.ExitStack() as open_clients:
        url = clusters.url_of(nodes)
        clients = [open_clients.enter_context(node.client()) for node in nodes]
        done, loaded = roll(
            clients,
            lambda name: Process("load.py", before, url, name),
            lambda name: Process("load.py", ROOT, url, name),
        )
        check(done)
        assert loaded == [1] * len(nodes)
        assert all(read_held(client).is_ours for client in clients)
