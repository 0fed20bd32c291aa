"""The server of our own: starts, keeps its data, belongs to one process, and goes when that goes."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis

from machines.conf.server import FolderInUse, Server, ServerFailed
from machines.conf.server.folder import LONGEST_SOCKET_PATH
from machines.conf.server.server import ALLOCATOR
from tests.installation.processes import alive, eventually

OWNER = """
import sys, time
from machines.conf.server import Server
server = Server(sys.argv[1]).start()
print(server.url, flush=True)
time.sleep(60)
"""


def client(server: Server) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def pid_of(url: str) -> int:
    with redis.Redis.from_url(url) as connection:
        return connection.info("server")["process_id"]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "valkey"


@pytest.fixture
def owner(python, folder):
    """Another process that owns a server in ``folder``; gives the process and the server's id."""
    process = python(OWNER, folder)
    url = process.stdout.readline().strip()
    return process, pid_of(url)


def test_it_answers_when_start_returns_and_is_gone_when_stop_returns(folder):
    server = Server(folder).start()
    pid = pid_of(server.url)
    assert server.running
    server.stop()
    assert not alive(pid)
    assert not server.running
    assert {path.name for path in folder.iterdir()} == {"appendonlydir", "lock", "valkey.log"}


def test_a_later_start_finds_the_data(folder):
    with Server(folder) as server, client(server) as connection:
        connection.set("kept", "yes")
    with Server(folder) as server, client(server) as connection:
        assert connection.get("kept") == "yes"


def test_nothing_is_ever_evicted_and_every_write_is_logged(folder):
    with Server(folder) as server, client(server) as connection:
        assert connection.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert connection.info("persistence")["aof_enabled"] == 1


def test_only_its_owner_can_talk_to_it(folder):
    with Server(folder) as server:
        path = folder / "valkey.sock"
        assert server.url == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with client(server) as connection:
            assert connection.config_get("port") == {"port": "0"}


def test_it_dies_with_an_owner_that_gets_sigkill(owner):
    process, server = owner
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: not alive(server), "the server ends after kill -9 of its owner")


def test_what_was_written_before_a_sigkill_of_the_owner_is_there_afterwards(python, folder):
    process = python(OWNER, folder)
    with redis.Redis.from_url(process.stdout.readline().strip()) as connection:
        connection.set("kept", "yes")
    process.kill()
    process.wait()
    with Server(folder) as server, client(server) as connection:  # waits for the old one to let go
        assert connection.get("kept") == "yes"


def test_a_second_start_on_the_same_folder_is_refused_and_names_the_first(owner, folder):
    process, server = owner
    with pytest.raises(FolderInUse, match=f"is in use by process {process.pid}; stop that one first") as caught:
        Server(folder).start()
    assert caught.value.pid == process.pid
    assert alive(server), "the first one is not disturbed"


def test_a_second_start_is_refused_within_one_process_too(folder):
    with Server(folder), pytest.raises(FolderInUse, match=f"process {os.getpid()}"):
        Server(folder).start()


def test_a_folder_with_a_long_or_strange_name_works(tmp_path):
    folder = tmp_path / ("long " * 30) / 'with "quotes", 50% off? #1 ü'
    assert len(os.fsencode(folder)) > LONGEST_SOCKET_PATH
    with Server(folder) as server, client(server) as connection:
        connection.set("kept", "yes")
        place = Path(server.url.removeprefix("unix://")).parent
        assert place.is_dir()
    assert not place.exists(), "the private folder of the socket is removed"


def test_a_folder_that_cannot_be_used_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ServerFailed, match="cannot be used: Not a directory"):
        Server(tmp_path / "file" / "folder").start()


def test_a_program_that_is_not_a_server_is_a_clear_error_and_leaves_the_folder_free(folder):
    with pytest.raises(ServerFailed, match="no program /no/such/server"):
        Server(folder, program="/no/such/server").start()
    with pytest.raises(ServerFailed, match=r"ended at once \(code 1\)"):
        Server(folder, program="/bin/false").start()
    with Server(folder) as server:
        assert server.running


def test_a_server_that_cannot_read_its_data_shows_why(folder):
    with Server(folder) as server, client(server) as connection:
        connection.set("kept", "yes")
    manifest = next(folder.glob("appendonlydir/*.manifest"))
    manifest.write_text("not a manifest\n")
    with pytest.raises(ServerFailed, match="manifest") as caught:
        Server(folder).start()
    assert caught.value.log


def test_one_that_was_killed_is_revived_with_its_data_at_the_same_address(folder):
    with Server(folder) as server:
        url = server.url
        with client(server) as connection:
            connection.set("kept", "yes")
        os.kill(pid_of(url), signal.SIGKILL)
        eventually(lambda: not server.running, "the end is noticed")
        server.revive()
        assert server.url == url
        assert server.running
        with client(server) as connection:
            assert connection.get("kept") == "yes"
    assert not (folder / "valkey.sock").exists()


def test_it_outlives_the_thread_that_started_it(folder):
    server = Server(folder)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    with client(server) as connection:
        assert connection.ping()
        assert server.running
    server.stop()


def test_debian_redis_runs_the_same_way(other_redis_url):
    with redis.Redis.from_url(other_redis_url) as connection:
        assert connection.info("server")["redis_version"].startswith("7.0")


MANY_FILES = """
import resource, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(2000, hard), hard))
held = [open("/dev/null") for _ in range(1200)]
from machines.conf.server import Server
with Server(sys.argv[1], persistent=False) as server:
    print("started")
"""


def test_a_program_with_more_than_a_thousand_files_open_can_start_one(folder):
    done = subprocess.run([sys.executable, "-c", MANY_FILES, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout == "started\n", done.stderr


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows the environment of a process")
@pytest.mark.parametrize("own", [None, "glibc.malloc.tcache_count=9"])
def test_its_allocator_keeps_what_is_freed_unless_the_environment_says_otherwise(folder, monkeypatch, own):
    if own:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    else:
        monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    with Server(folder) as server, server.client() as client:
        environment = Path(f"/proc/{client.info('server')['process_id']}/environ").read_text().split("\0")
    first = (own or ALLOCATOR["GLIBC_TUNABLES"]).partition(":")[0]  # glibc cuts the text where it has read it
    assert f"GLIBC_TUNABLES={first}" in environment
