"""The demo as a process that somebody starts, stops, starts twice, and kills."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dashboard.serving import server
from dashboard.site import home
from tests.installation.processes import ROOT, alive, descendants, eventually

pytestmark = pytest.mark.redis


class Demo:
    """One demo process in ``home``, and what it has said so far."""

    def __init__(self, home: Path, *arguments: str, command: list[str] | None = None) -> None:
        env = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        self.home = home
        self.said = ""
        self.process = subprocess.Popen(
            [*(command or [sys.executable, "manage.py", "demo", "--port", "0"]), *arguments],
            cwd=ROOT,
            env=env | {"SIGNALBOX_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def open(self) -> str:
        """Waits until it announces its address, and returns that."""
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C stops everything" in line:
                return re.search(r"Open +(http\S+)", self.said)[1]
        raise AssertionError(f"the demo ended: {self.said}")

    def family(self) -> set[int]:
        return descendants(self.process.pid)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.said += self.process.stdout.read()
        return self.process.wait(90)

    def redis(self) -> redis.Redis:
        url = (self.home / "valkey" / "url").read_text().strip()
        return redis.Redis.from_url(url, decode_responses=True)


@pytest.fixture
def demo(tmp_path) -> Iterator:
    started: list[Demo] = []

    def start(*arguments: str, **options) -> Demo:
        started.append(Demo(tmp_path / "home", *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}healthz", timeout=10) as answer:
            return json.load(answer)["status"] == "ok"
    except urllib.error.HTTPError as error:
        error.close()
        return False


def all_gone(pids: set[int]) -> None:
    eventually(lambda: not any(map(alive, pids)), "every process of the demo ends")


def test_a_whole_day_at_the_demo(demo, tmp_path):
    with server.listen("127.0.0.1", 0) as busy:
        wanted = busy.getsockname()[1]
        first = demo("--port", str(wanted))
        url = first.open()
        assert f"{wanted} is busy, took" in first.said
        assert healthy(url)
    for name in ("activation", "delivery", "new_device", "payment", "service_activation", "map_reduce"):
        assert re.search(rf"machines .*\b{name} v1\b", first.said), name

    logins = tmp_path / "home" / "logins.json"
    assert stat.S_IMODE(logins.stat().st_mode) == 0o600
    passwords = json.loads(logins.read_text())
    assert set(passwords) == {"admin", "supervisor", "operator", "viewer"}
    for name, password in passwords.items():
        assert re.search(rf"Log in +{name} +{re.escape(password)} ", first.said), name

    family = first.family()
    # The worker that holds jobs has a process that renews their leases.
    assert len(family) in (8, 9), "site, worker, traffic and server, each with its guardian"

    second = demo()
    assert second.end(0) == 1
    assert f"a demo already runs in this folder (process {first.process.pid})" in second.said
    assert healthy(url), "the first one is not disturbed"

    with first.redis() as client:
        eventually(lambda: len(list(client.scan_iter("sb:{new_device:0}:i:*"))) > 1, "traffic makes devices")
        eventually(lambda: list(client.scan_iter("sb:{service_activation:0}:i:*")), "and requests")
        client.set("kept", "yes")
    assert first.end(signal.SIGTERM) == 0
    assert "Stopped" in first.said
    all_gone(family)

    third = demo()
    third.open()
    assert re.search(rf"admin +{re.escape(passwords['admin'])}", third.said), "the passwords are still the same"
    assert "up to date" in third.said
    with third.redis() as client:
        assert client.get("kept") == "yes"
    family = third.family()
    third.process.kill()
    third.process.wait()
    all_gone(family)


@pytest.mark.cluster
def test_a_demo_on_a_cluster_brings_a_node_back_and_other_commands_find_it(demo, tmp_path):
    one = demo("--cluster", "--no-traffic")
    url = one.open()
    assert healthy(url)
    folder = tmp_path / "home" / "cluster"
    address = (folder / "url").read_text().strip()
    assert home.redis_url(tmp_path / "home") == address
    assert stat.S_IMODE((folder / "url").stat().st_mode) == 0o600
    with redis.RedisCluster.from_url(
        address.replace("+cluster", "").partition(",")[0], decode_responses=True
    ) as client:
        assert set(client.hgetall("sb:machines").values()) == {"12"}
        os.kill(int((folder / "node0" / "pid").read_text()), signal.SIGKILL)
        eventually(lambda: healthy(url), "all shards answer")
        eventually(lambda: len(client.get_nodes()) == 6 and client.ping(), "the node is back")
    family = one.family()
    assert one.end() == 0
    all_gone(family)
    assert home.redis_url(tmp_path / "home") == "redis://127.0.0.1:6379/0"


@pytest.fixture
def under_make(demo, tmp_path) -> Demo:
    makefile = tmp_path / "Makefile"
    python = shlex.quote(sys.executable)
    makefile.write_text(f"demo:\n\t@true && exec {python} manage.py demo --port 0 --no-traffic --with-parent\n")
    return demo(command=["make", "-f", str(makefile), "demo"])


def test_a_member_that_ends_is_started_again_and_the_demo_goes_on(under_make):
    one = under_make
    url = one.open()
    with one.redis() as client:
        eventually(lambda: client.zcard("sb:workers"), "the worker reports")
        [worker] = [row["pid"] for row in map(client.hgetall, client.scan_iter("sb:worker:*"))]
        os.kill(int(worker), signal.SIGKILL)
        assert "worker     ended by itself (code 137)" in one.process.stdout.readline()
        eventually(lambda: client.zcard("sb:workers") > 1, "another worker reports")
        client.set("kept", "yes")
        assert client.waitaof(1, 0, 5000)[0] == 1, "what is not on disk yet may go with the server"
        os.kill(client.info("server")["process_id"], signal.SIGKILL)
    assert "redis      ended by itself; starting it again on its data" in one.process.stdout.readline()
    eventually(lambda: healthy(url), "the site is well again")
    with one.redis() as client:
        assert client.get("kept") == "yes"
    ends_with_make(one, signal.SIGINT)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at parents the way Linux shows them")
def test_a_demo_under_make_ends_with_make_that_is_killed(under_make):
    under_make.open()
    ends_with_make(under_make, signal.SIGKILL)


def ends_with_make(one: Demo, number: int) -> None:
    """The signal goes to make alone, as no terminal would send it."""
    family = one.family()
    one.process.send_signal(number)
    all_gone(family)
    assert one.process.wait(90) != 0


def test_a_redis_that_was_named_and_is_away_ends_the_demo_with_a_clear_word(demo, monkeypatch, tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "demo"],
        cwd=ROOT,
        env=os.environ | {"SIGNALBOX_HOME": str(tmp_path / "home"), "REDIS_URL": "redis://:secret@127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Redis does not answer at redis://:***@127.0.0.1:1" in done.stderr
    assert "secret" not in done.stderr
