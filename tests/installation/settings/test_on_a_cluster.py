"""System checks, cache and health checks of an installation on a Redis Cluster."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard.serving import cache as site_cache
from dashboard.serving.checks import system_checks
from dashboard.site import stores
from machines.conf.server.server import Node
from tests.configuration import configure
from tests.engine.connection import clusters
from tests.installation.processes import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def installation(cluster, prefix, settings):
    """The site pointed at the cluster."""
    configure(settings, REDIS_URL=cluster.url)
    settings.CACHES = stores.caches(cluster.url, prefix)
    settings.SESSION_ENGINE = stores.session_engine("", cluster.url)
    for node in cluster.nodes:
        with node.client() as client:
            client.config_set("appendonly", "yes")
    yield cluster
    for name in (prefix, stores.web_prefix(prefix)):
        clusters.remove(cluster.nodes, name)
    for client in site_cache._made.values():
        client.close()
    site_cache._made.clear()


def list_found() -> dict[str, str]:
    """All findings but those about replicas: the cluster of these tests has one for each primary."""
    found = {message.id: message.msg for message in system_checks.redis_server(None)}
    assert found.pop("signalbox.W014").startswith("the server has 1 replica: ")
    assert "min-replicas-to-write is 0" in found.pop("signalbox.W015")
    return found


def set_at(node: Node, name: str, value: str) -> None:
    with node.client() as client:
        client.config_set(name, value)


def test_a_good_cluster_has_no_findings(installation):
    assert list_found() == {}


def test_a_finding_names_the_primaries_that_it_is_about(installation):
    (first, second, _) = installation.primary_nodes()
    for node in (first, second):
        set_at(node, "cluster-require-full-coverage", "yes")
    set_at(first, "maxmemory-policy", "allkeys-lru")
    try:
        found = list_found()
        assert set(found) == {"signalbox.E004", "signalbox.W013"}
        assert found["signalbox.E004"].endswith(f"(on {first.address} of the cluster)")
        assert first.address in found["signalbox.W013"]
        assert second.address in found["signalbox.W013"]
    finally:
        set_at(first, "maxmemory-policy", "noeviction")
        for node in (first, second):
            set_at(node, "cluster-require-full-coverage", "no")


def test_an_account_that_lacks_a_command_on_one_primary_is_told(installation, settings):
    for node in installation.nodes:
        with node.client() as client:
            client.acl_setuser(
                "narrow", enabled=True, passwords=["+pw"], keys=["*"], channels=["*"], commands=["+@all"]
            )
    with installation.primary_nodes()[1].client() as client:
        client.execute_command("ACL", "SETUSER", "narrow", "-xautoclaim")
    configure(settings, REDIS_URL=installation.url.replace("://", "://narrow:pw@"))
    found = list_found()
    assert set(found) == {"signalbox.E011"}
    assert "lacks xautoclaim" in found["signalbox.E011"]
    assert installation.primary_nodes()[1].address in found["signalbox.E011"]


def test_the_cache_lies_on_all_nodes(installation):
    values = {f"k{number}": {"n": number} for number in range(20)}
    cache.set_many(values)
    assert cache.get_many([*values, "none"]) == values
    assert cache.get("k3") == {"n": 3}
    assert cache.delete("k3")
    assert cache.delete_many(["k4", "k5", "k6"]) == 3
    assert cache.add("k4", 1)
    assert not cache.add("k7", 1)
    assert cache.touch("k7", 10)


def test_health_checks_name_the_slots_of_a_shard_that_is_down_and_go_on(installation, db):
    client = Client()
    assert client.get("/healthz").json() == {"status": "ok", "redis": "ok", "database": "ok"}
    owner = installation.owner_of(0)
    (replica,) = installation.replicas_of(owner)
    replica.stop()
    owner.kill()
    try:
        eventually(lambda: client.get("/healthz").json()["redis"] == "partial", "the shard is missed")
        response = client.get("/healthz")
        assert (response.status_code, response.json()["missing"]) == (200, ["0-5460"])
        response = client.get("/readyz")
        assert response.status_code == 200, response.content
        found = response.json()
        assert {name for name, state in found.items() if state == "partial"} == {"status", "redis", "cache"}
        assert {"signalbox.W001", "signalbox.W012"} & set(list_found())
    finally:
        owner.revive()
        replica.revive()
        installation.wait_settled()
    eventually(lambda: client.get("/healthz").json()["status"] == "ok", "all shards are back")
