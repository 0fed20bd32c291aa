"""What a failover loses, by what the caller chose: docs/durability.md names each of these."""

import pytest

from dashboard.instances.presenters import describe_repair
from dashboard.instances.views import describe_step
from dashboard.serving.checks import system_checks
from machines.conf.server import Server
from machines.connections import get_engine
from machines.engine import BadInput, Engine, EngineUnavailable, Fire
from machines.engine.keys import PREFIX
from tests.clusters import Cluster
from tests.configuration import configure
from tests.engine.builders import counter, machine, publish
from tests.installation.processes import eventually

from .processes import LONG, kill
from .proxy import Proxy

pytestmark = pytest.mark.redis

SHORT = 200  # ms that a call waits for a replica that is cut off


@pytest.fixture
def link(own_server, own_engine, tmp_path, program_of_this_run):
    """The line between the server and its replica; ``link.replica`` is an engine there, ``link.engine`` one that waits
    for it."""
    own_engine.client.config_set("repl-diskless-sync-delay", 0)
    with (
        Server(tmp_path / "replica", program=program_of_this_run, persistent=False) as server,
        Proxy(own_server.url) as line,
    ):
        line.replica = Engine.from_url(server.url)
        line.replica.client.replicaof("127.0.0.1", line.port)
        follows = lambda: line.replica.client.info("replication").get("master_link_status") == "up"  # noqa: E731
        eventually(follows, "it follows", LONG)
        line.engine = Engine.from_url(own_server.url, replicas=1, replica_timeout=3000)
        publish(line.engine, tally(), "x")
        yield line
        line.engine.client.close()
        line.replica.client.close()


def tally():
    return machine("tally", {"On": {"on": {"tick": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0})


def impatient(own_server):
    return Engine.from_url(own_server.url, replicas=1, replica_timeout=SHORT)


def words(instance):
    return instance.outcome.durability, instance.outcome.replicated


def promote(link):
    link.replica.client.replicaof("NO", "ONE")
    return link.replica


def test_each_change_waits_for_as_many_replicas_as_the_engine_or_the_call_says(own_server, own_engine, link):
    engine = link.engine
    assert words(engine.create("tally", "y")) == ("replicated", 1)
    assert words(engine.fire("tally", "x", "tick")) == ("replicated", 1)
    assert words(engine.force("tally", "x", "On", actor="a", reason="r", data={"n": 0})) == ("replicated", 1)
    assert [words(one) for one in engine.fire_many([Fire("tally", id, "tick") for id in "xy"])] == [
        ("replicated", 1)
    ] * 2
    assert words(engine.fire("tally", "x", "tick", replicas=0)) == ("written", None)
    assert words(own_engine.fire("tally", "x", "tick")) == ("written", None)
    assert words(own_engine.fire("tally", "x", "tick", replicas=1)) == ("replicated", 1)
    engine = impatient(own_server)
    assert words(engine.fire("tally", "x", "tick", replicas=2)) == ("written, not replicated", 1)
    for wrong in (-1, 17, "1", True):
        with pytest.raises(BadInput, match="replicas is a whole number from 0 to 16"):
            engine.fire("tally", "x", "tick", replicas=wrong)
    assert engine.get("tally", "x").data["n"] == link.replica.get("tally", "x").data["n"] == 5
    engine.client.close()


def test_steps_that_were_replicated_survive_and_those_that_were_not_say_so(own_server, own_engine, link):
    """The line to the replica is cut a moment before the server dies."""
    sure = [words(link.engine.fire("tally", "x", "tick")) for _ in range(50)]
    link.freeze()
    engine = impatient(own_server)
    unsure = [words(engine.fire("tally", "x", "tick", key=f"k{n}")) for n in range(3)]
    many = [words(one) for one in engine.fire_many([Fire("tally", "x", "tick")] * 20)]
    again = engine.fire("tally", "x", "tick", key="k0")
    assert set(sure) == {("replicated", 1)}
    assert set(unsure + many) == {("written, not replicated", 0)}
    assert (again.outcome.replayed, words(again)) == (True, ("written, not replicated", 0))
    assert engine.get("tally", "x").data["n"] == 73
    kill(own_server, own_engine)
    assert promote(link).get("tally", "x").data["n"] == 50
    engine.client.close()


def test_without_waiting_a_cut_line_loses_what_was_answered(own_server, own_engine, link):
    own_engine.fire("tally", "x", "tick", replicas=1)
    link.freeze()
    assert {words(own_engine.fire("tally", "x", "tick")) for _ in range(50)} == {("written", None)}
    kill(own_server, own_engine)
    assert promote(link).get("tally", "x").data["n"] == 1


def test_with_min_replicas_a_server_that_is_cut_off_refuses_after_its_lag(own_server, own_engine, link):
    own_engine.client.config_set("min-replicas-max-lag", 1)
    own_engine.client.config_set("min-replicas-to-write", 1)
    link.freeze()
    refused = []

    def refuses():
        try:
            own_engine.fire("tally", "x", "tick")
        except EngineUnavailable as error:
            refused.append(error)
        return refused

    eventually(refuses, "the server refuses to write alone", LONG)
    written = own_engine.get("tally", "x").data["n"]
    assert refused[0].retry_safe
    assert [type(one) for one in own_engine.fire_many([("tally", "x", "tick")])] == [EngineUnavailable]
    assert own_engine.get("tally", "x").data["n"] == written
    kill(own_server, own_engine)
    assert promote(link).get("tally", "x").data["n"] <= written


@pytest.mark.cluster
def test_on_a_cluster_replicated_steps_survive_the_loss_of_their_node(tmp_path, program_of_this_run):
    with Cluster(tmp_path / "cluster", program=program_of_this_run) as cluster:
        engine = Engine.from_url(cluster.url, partitions=6, replicas=1, replica_timeout=3000)
        ids = [f"i{number}" for number in range(12)]
        publish(engine, tally(), *ids)
        found = engine.fire_many([Fire("tally", id, "tick") for id in ids for _ in range(5)])
        assert {words(one) for one in found} == {("replicated", 1)}
        kept = cluster.owner_of(engine.client.keyslot(engine._root("tally", "i1")))
        assert {words(engine.fire("tally", "i1", "tick", replicas=0)) for _ in range(100)} == {("written", None)}
        cluster.fail_over(kept)
        assert engine.get("tally", "i1").data["n"] == 105, "in order, nothing is lost"
        cluster.owner_of(engine.client.keyslot(engine._root("tally", "i0"))).kill()
        cluster.wait_settled()
        assert {engine.get("tally", id).data["n"] for id in ids} == {5, 105}
        engine.client.close()


def test_a_check_names_too_few_replicas_and_missing_min_replicas(own_engine, link):
    def found(client):
        return [
            (message.id, message.level < system_checks.ERROR) for message in system_checks._check_replication(client)
        ]

    assert found(own_engine.client) == [("signalbox.W014", True), ("signalbox.W015", True)]
    own_engine.client.config_set("min-replicas-to-write", 1)
    assert found(own_engine.client) == [("signalbox.W014", True)]
    assert found(link.replica.client) == []


def test_a_server_without_replicas_is_asked_for_none(own_engine):
    publish(own_engine, counter(), "x")
    assert list(system_checks._check_replication(own_engine.client)) == []


def test_the_setting_is_the_default_of_the_site_and_a_page_says_what_was_not_replicated(own_server, link, settings):
    configure(settings, REDIS_URL=own_server.url, PREFIX=PREFIX)
    configure(settings, REPLICAS=1, REPLICA_TIMEOUT=SHORT)
    engine = get_engine()
    assert words(engine.fire("tally", "x", "tick")) == ("replicated", 1)
    link.freeze()
    after = engine.fire("tally", "x", "tick")
    assert describe_step("tick", after).endswith("revision 3 (written, not replicated)")
    forced = engine.force("tally", "x", "On", actor="a", reason="r")
    assert describe_repair("force", after, forced).endswith("revision 4 (written, not replicated)")
    assert describe_step("tick", engine.fire("tally", "x", "tick", replicas=0)).endswith("revision 5")
    engine.client.close()
