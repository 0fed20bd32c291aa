"""Each Redis account has what it needs on the nodes of a cluster, and one that lacks something is told what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dashboard.serving.checks.redis_accounts import ACCOUNTS
from machines.engine import Engine, InstanceExists, LibraryNotLoaded, NotPermitted
from machines.engine.connection import library
from machines.management import library_command
from tests.clusters import Cluster
from tests.configuration import configure
from tests.engine.builders import door
from tests.security.disclosure.planted import NAME
from tests.security.permissions.test_acl import HARMLESS, at_engine, at_patterns, at_reading

from .site import PREFIX, Site

pytestmark = pytest.mark.cluster


class Nodes:
    """The nodes of a cluster, each with the accounts."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        for name in ACCOUNTS:
            self.give(name)

    def give(self, name: str, *, but: str = "") -> None:
        """The account with its line, ``but`` for one word of it; keys of its own, which a program's line names."""
        rules = [rule for rule in ACCOUNTS[name].rules(PREFIX, cluster=True) if rule != but]
        self.everywhere("ACL", "SETUSER", name, *rules, "~mine:*", ">a-password")

    def everywhere(self, *words: str) -> list[object]:
        found = []
        for node in self.cluster.nodes:
            with node.client() as client:
                found.append(client.execute_command(*words))
        return found

    def url(self, name: str) -> str:
        return self.cluster.url.replace("redis+cluster://", f"redis+cluster://{name}:a-password@", 1)

    def denied(self) -> set[str]:
        """What any account was refused since the last look, but for what programs go on without."""
        found = set()
        for node in self.cluster.nodes:
            with node.client() as client:
                found |= {(entry["username"], entry["reason"], entry["object"]) for entry in client.acl_log()}
                client.acl_log_reset()
        return {" ".join(entry) for entry in found if entry[2] not in HARMLESS and not entry[2].startswith("config|")}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, program_of_this_run: str | None) -> Iterator[Nodes]:
    with Cluster(tmp_path_factory.mktemp("accounts"), replicas=0, program=program_of_this_run) as cluster:
        yield Nodes(cluster)


@pytest.fixture
def empty(nodes: Nodes) -> Iterator[Nodes]:
    """The nodes without keys, and nothing refused yet."""
    with closing(Engine.from_url(nodes.url("deploy"), prefix=PREFIX).client) as client:
        Engine(client, prefix=PREFIX).load_library(again=False)
    nodes.denied()
    yield nodes
    nodes.everywhere("FLUSHALL")
    for name in ACCOUNTS:
        nodes.give(name)


def engine_of(nodes: Nodes, name: str, settings: object) -> Engine:
    """An engine of an account, with the site pointed at it."""
    configure(settings, REDIS_URL=nodes.url(name), PREFIX=PREFIX)
    return Engine.from_url(nodes.url(name), prefix=PREFIX, partitions=6)


@pytest.mark.django_db
def test_a_program_and_a_reader_do_all_of_it_with_their_lines(empty: Nodes, settings) -> None:
    engine = engine_of(empty, "engine", settings)
    assert engine.missing_commands() == []
    at_engine(engine)
    at_patterns(engine)
    reader = Engine.from_url(empty.url("reader"), prefix=PREFIX)
    at_reading(reader)
    assert empty.denied() == set()
    with pytest.raises(NotPermitted):
        reader.fire(NAME, "p-1", "ring")
    engine.client.close()
    reader.client.close()


class GuardedSite(Site):
    """Its web process and its worker have accounts of their own."""

    def __init__(self, nodes: Nodes, home: Path) -> None:
        super().__init__(nodes.cluster, home)
        self._nodes = nodes
        self.environment["REDIS_URL"] = nodes.url("web")

    def _run(self, *words: str) -> None:
        self.environment["REDIS_URL"] = self._nodes.url("worker" if words[0] == "worker" else "web")
        super()._run(*words)


def test_the_site_and_a_worker_do_all_of_it_with_their_lines(empty: Nodes, tmp_path: Path) -> None:
    site = GuardedSite(empty, tmp_path)
    try:
        site.start()
        site.engine.create("new_device", "d1")
        with site.live() as live:
            live.watch("machine:activation")
            live.sees("machine:activation", lambda value: value["total"] == 0, "no instance yet")
            site.engine.create("activation", "ATV-1:NBC")
            live.sees("machine:activation", lambda value: value["total"] == 1, "one instance")
        for address in ("/", "/machines/activation/", "/machines/activation/instances/ATV-1:NBC/", "/queues/",
                        "/workers/", "/audit/", "/metrics", "/search/?q=AT", "/patterns/"):  # fmt: skip
            assert site.visitor.get(address).status_code == 200, address
    finally:
        site.stop()
    assert empty.denied() == set(), site.log("serve") + site.log("worker")


def create_each(engine: Engine, ids: list[str]) -> None:
    for id in ids:
        with suppress(InstanceExists):
            engine.create("door", id)


def test_a_node_that_came_later_gets_the_library_by_the_command_and_the_error_names_it(
    empty: Nodes, settings, capsys
) -> None:
    engine = engine_of(empty, "web", settings)
    engine.publish(door())
    ids = [f"d{number}" for number in range(12)]  # in each partition, so on each node
    node = empty.cluster.nodes[1]
    address = f"127.0.0.1:{node.port}"
    with node.client() as client:
        client.function_flush()
    with pytest.raises(LibraryNotLoaded, match=f"the server {address} has no .*signalbox library load"):
        create_each(engine, ids)
    assert library_command.run(["load", "--url", empty.url("deploy"), "--prefix", PREFIX], {}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert [line for line in lines if "is loaded, there was none" in line] == [
        f"{address}: the library of release {library.RELEASE} is loaded, there was none"
    ]
    create_each(engine, ids)
    assert engine.counts("door") == {"Shut": 12, "Open": 0}
    engine.client.close()


@pytest.mark.parametrize("command", ["cluster|slots", "command"])
def test_a_command_that_an_account_lacks_to_find_the_nodes_is_named(empty: Nodes, settings, command: str) -> None:
    empty.give("engine", but=f"+{command}")
    with pytest.raises(NotPermitted, match=command.replace("|", r"\|")):
        engine_of(empty, "engine", settings)
