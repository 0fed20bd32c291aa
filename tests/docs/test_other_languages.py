"""The page on other languages: its session of redis-cli, its program and its statuses are as they are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from machines.engine import Engine
from machines.engine.connection import library
from tests.conftest import missing
from tests.engine.connection.clusters import url_of

from .test_examples import block

PAGE = "docs/other-languages.md"
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
BOOKING = json.loads(block("docs/tutorial.md", "json", '"id": "booking"'))
OMITTED = "..."


def session() -> Iterator[tuple[str, str]]:
    """The commands of the page in order, each with its reply."""
    for found in re.findall(r"```redis-cli\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^> ", found, flags=re.MULTILINE)[1:]:
            command, _, reply = part.partition("\n")
            yield command, reply.strip()


def normalized(reply: str) -> list[object]:
    """The lines of a reply; texts of JSON objects as what they mean, and the digest of a definition as one word."""
    return [_normalize(line) for line in re.sub(r"1:[0-9a-f]{12}", "1:digest", reply).splitlines()]


def _normalize(line: str) -> object:
    found = re.fullmatch(r'(.*?)"(\{.*\})"', line)
    return (found[1], json.loads(json.loads(f'"{found[2]}"'))) if found else line.rstrip()


@pytest.mark.redis
def test_the_session_is_answered_as_the_page_says(own_server):
    if shutil.which("redis-cli") is None:
        missing("redis-cli", "install it (Debian: redis-tools)")
    engine = Engine.from_url(own_server.url)
    engine.publish(BOOKING)
    path = own_server.url.removeprefix("unix://").partition("?")[0]
    for command, expected in session():
        said = subprocess.run(
            ["redis-cli", "-s", path, "--no-raw"], input=f"{command}\n", capture_output=True, text=True, check=True
        ).stdout.strip()
        if expected != OMITTED:
            assert normalized(said) == normalized(expected), command
    (row,) = engine.workers()
    assert (row.id, row.done, row.queues) == ("node-1", 12, ["booking/book_courier"])
    engine.client.close()


@pytest.mark.redis
def test_the_program_without_our_client_runs(own_server):
    engine = Engine.from_url(own_server.url)
    engine.publish({**BOOKING, "partitions": 3})
    assert run(own_server.url, block(PAGE, "python", "crc_hqx")).splitlines() == [
        *(f"N-{number} Asking" for number in range(10)),
        "REFUSED no transition",
    ]
    assert engine.get("booking", "N-9").data["weight"] == 9
    assert engine.counts("booking")["Asking"] == 10
    engine.client.close()


@pytest.mark.cluster
def test_the_program_runs_on_a_cluster(nodes):
    url = url_of(nodes).replace("redis+cluster://", "redis://").partition(",")[0]
    engine = Engine.from_url(url_of(nodes))
    engine.publish({**BOOKING, "partitions": 5})
    code = block(PAGE, "python", "crc_hqx").replace("redis.Redis.from_url", "redis.RedisCluster.from_url")
    assert run(url, code).endswith("REFUSED no transition\n")
    assert engine.counts("booking")["Asking"] == 10
    engine.client.close()


def run(url: str, code: str) -> str:
    """What a program prints that can import redis-py and nothing of the product."""
    assert "machines" not in re.sub(r"sb:machines", "", code)
    done = subprocess.run([sys.executable, "-I", "-c", code, url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.pure
def test_every_status_of_the_library_is_on_the_page():
    text = (library.FOLDER / "base" / "replies.lua").read_text(encoding="utf-8")
    statuses = set(re.findall(r"^replies\.[A-Z_]+ = '([A-Z]+)'", text, re.MULTILINE))
    assert len(statuses) > 15
    assert [status for status in sorted(statuses) if f"`{status}`" not in TEXT] == []


@pytest.mark.pure
def test_the_node_worker_is_as_short_as_an_example_has_to_be():
    lines = (ROOT / "examples" / "node-worker" / "worker.mjs").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line and not line.startswith(("//", "import "))]
    assert len(code) <= 50
