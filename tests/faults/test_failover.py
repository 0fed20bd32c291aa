"""The server dies, a replica is promoted, and the address leads there."""

import pytest

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.connection import library
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, kill, wait_for
from .proxy import Proxy

pytestmark = pytest.mark.redis

JOBS = 300


@pytest.fixture
def replica(own_server, own_engine, tmp_path, program_of_this_run):
    """An engine on a second server that follows the first one."""
    own_engine.client.config_set("repl-diskless-sync-delay", 0)
    with (
        Server(tmp_path / "replica", program=program_of_this_run, persistent=False) as server,
        Proxy(own_server.url) as link,
    ):
        engine = Engine.from_url(server.url)
        engine.client.replicaof("127.0.0.1", link.port)
        eventually(lambda: engine.client.info("replication").get("master_link_status") == "up", "it follows", LONG)
        yield engine, server
        engine.client.close()


def test_workers_go_on_with_what_was_replicated(own_server, own_engine, replica, proxy, workers):
    successor, server = replica
    own_engine.publish(line("quick", "sleepy", lease=500, unique=True))
    workers.url = proxy.url
    running = [workers.start(concurrency=8) for _ in range(2)]
    begin(own_engine, (f"i{number}" for number in range(JOBS)))
    wait_for(own_engine, JOBS // 3)
    done = {f"i{number}" for number in range(JOBS) if own_engine.get("line", f"i{number}").state == "done"}
    assert own_engine.client.wait(1, int(LONG * 1000)) == 1, "the replica has all of that"
    kill(own_server, own_engine)
    successor.client.replicaof("NO", "ONE")
    assert len(successor.client.function_list(library.NAME)) == 1, "the library was replicated, too"
    proxy.switch(server.url)
    wait_for(successor, JOBS)
    assert all("completed" in worker.finish() for worker in running)
    found = audit(successor, "line")
    assert (found.states, found.places) == ({"done": JOBS}, {})
    assert done <= found.of("done")
    assert {row["moved"] for row in found.instances.values()} == {"2"}
