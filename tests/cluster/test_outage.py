"""A whole shard is down: pages, lists, live view and health checks show the others, and what is missing."""

from __future__ import annotations

import pytest
from django.urls import reverse

from machines.engine.keys import choose_partition
from tests.installation.processes import eventually

from .site import PAGES, Site

pytestmark = pytest.mark.cluster


def test_pages_go_on_while_the_owner_of_slot_0_is_down_and_say_what_is_missing(site: Site):
    engine, cluster = site.engine, site.cluster
    for n in range(24):
        engine.create("payment", f"pay:{n}", key=f"pay:{n}")
    owner = cluster.owner_of(0)
    (replica,) = cluster.replicas_of(owner)
    lost = {
        n
        for n in range(12)
        if engine.client.get_node_from_key(engine.keys.partition("payment", n).root).port == owner.port
    }
    with site.live() as live:
        live.watch("machine:payment", "overview")
        live.sees("machine:payment", lambda value: value["total"] >= 24, "all payments")
        assert {page: site.visitor.get(page).status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
        replica.stop()
        owner.kill()
        try:
            live.sees("machine:payment", lambda value: set(value.get("missing", ())) == lost, "what is missing")
            live.sees("overview", lambda value: value["machines"]["payment"].get("missing"), "the same in the overview")
            assert {page: site.visitor.get(page).status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
            assert f"{len(lost)} of 12 partitions do not answer" in site.visitor.read("/machines/payment/")
            assert f"without {len(lost)} of 12 partitions" in site.visitor.read("/")
            assert site.visitor.get("/readyz").status_code == 200
            assert site.visitor.get("/healthz").json()["missing"] == ["0-5460"]
            here = next(f"pay:{n}" for n in range(24) if choose_partition(f"pay:{n}", 12) not in lost)
            assert site.visitor.get(reverse("signalbox:instance", args=["payment", here])).status_code == 200
            there = next(f"pay:{n}" for n in range(24) if choose_partition(f"pay:{n}", 12) in lost)
            assert site.visitor.get(reverse("signalbox:instance", args=["payment", there])).status_code == 503
        finally:
            owner.revive()
            replica.revive()
            cluster.wait_settled()
        live.sees("machine:payment", lambda value: value["total"] >= 24 and "missing" not in value, "all are back")
    eventually(lambda: site.visitor.get("/healthz").json()["status"] == "ok", "all shards answer")
    assert {page: site.visitor.get(page).status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
