"""Everything of the product on a cluster of six nodes: pages, admin, API, live view, workers, bulk, map-reduce."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from machines.mapreduce import MapReduce
from tests.installation.processes import eventually
from tests.pages.table import TABLE

from .site import Site

pytestmark = pytest.mark.cluster

THING = "ATV-123:NBCSports"
# Of things that this installation does not have.
MISSING = {
    "alarm-route",
    "plan-new",
    "sm-key",
    "bulk",
    "bulk-results",
    "approval",
    "approval-approve",
    "approval-decline",
    "approval-withdraw",
    "job",
}
OF_SCHEDULES = {name for name in TABLE if name.startswith("schedule-") and name != "schedule-new"} | {"schedule"}


def test_checks_migrations_and_commands_run(site: Site):
    assert "ERRORS" not in site.checked
    assert "activation v1 is current" in site.checked
    assert "activation" in site.manage("machine", "list")
    assert site.engine.count_partitions("activation") == 12
    assert site.visitor.get("/healthz").json() == {"status": "ok", "redis": "ok", "database": "ok"}


def test_every_page_opens(site: Site):
    site.engine.create("activation", THING)
    wrong = {}
    for name, entry in TABLE.items():
        answer = site.visitor.get(entry.url(name))
        kind = name.partition("-")[0]
        shown = kind in ("draft", "plan") and "id" in entry.arguments and entry.get == 200
        of_one = kind in ("webhook", "error") and name != "error-retry"
        is_missing = name in MISSING or of_one or name in OF_SCHEDULES or shown
        wanted = 404 if is_missing else entry.get
        if is_missing and entry.get == answer.status_code == 302:  # to the page, which says that there is nothing
            wanted = 302
        wanted = answer.status_code if name == "job" and answer.status_code == 410 else wanted  # it was there once
        wanted = 302 if name in ("login", "admin-login", "webhook-make") else wanted
        if answer.status_code != wanted:
            wrong[name] = (answer.status_code, wanted)
    assert wrong == {}


def test_the_admin_and_the_pages_fire(site: Site):
    site.engine.create("activation", "box:1")
    machines = site.visitor.get("/admin/machines/machine/").text
    pk = re.search(r"/admin/machines/machine/(\d+)/change/[^>]*>activation", machines)
    assert pk, machines
    admin = reverse("admin:machines_machine_instance", args=[pk[1]]) + "?id=box%3A1"
    assert site.visitor.post(admin, at=admin, event="activate", expect="1", **{"payload-token": "T"}).status_code == 302
    assert site.engine.get("activation", "box:1").state == "Waiting"
    place = reverse("signalbox:instance", args=["activation", "box:1"])
    fire = reverse("signalbox:fire", args=["activation", "box:1"])
    answer = site.visitor.post(fire, at=place, event="entitle", expect="2", key="k-1", **{"payload-token": "T"})
    assert answer.status_code == 302, answer.text[:2000]
    assert site.engine.get("activation", "box:1").state == "Active"


def test_the_api_fires_many_and_counts(site: Site):
    ids = [f"api:{number}" for number in range(24)]
    for id in ids:
        made = site.visitor.call("POST", "/machines/activation/instances", json={"id": id})
        assert made.status_code == 201, made.text
    calls = [{"id": id, "event": "activate", "payload": {"token": "T"}} for id in ids]
    fired = site.visitor.call("POST", "/machines/activation/events", json={"calls": calls})
    assert fired.status_code == 200, fired.text
    found = site.visitor.call("GET", "/machines/activation/instances?state=Waiting&id=api:&limit=100")
    assert {row["id"] for row in found.json()["items"]} >= set(ids)
    counts = site.visitor.call("GET", "/machines/activation/counts").json()
    assert counts["counts"]["Waiting"] >= len(ids), counts


def test_an_open_page_sees_steps_of_every_partition(site: Site):
    with site.live() as live:
        live.watch("machine:delivery", "overview")
        before = live.sees("machine:delivery", lambda value: True, "a snapshot")["total"]
        for n in range(24):
            site.engine.create("delivery", f"p{n}")
        live.sees("machine:delivery", lambda value: value["total"] == before + 24, "each instance")
        live.sees("overview", lambda value: _total(value, "delivery") == before + 24, "the same in the overview")


def test_workers_run_jobs_of_every_partition(site: Site):
    for n in range(12):
        site.engine.create("new_device", f"D{n}", {"service": "Arte", "device": f"D{n}"})
    eventually(lambda: _sum(site, "new_device", "start", "todo", "provision") == 0, "all devices moved on")
    assert site.visitor.get(reverse("signalbox:queues")).status_code == 200
    workers = site.visitor.call("GET", "/workers").json()["items"]
    assert len(workers) == 1


def test_a_bulk_action_runs_on_all_partitions(site: Site):
    for n in range(12):
        site.engine.create("activation", f"bulk:{n}")
    order = {"action": "fire", "event": "activate", "filter": {"state": "New", "id": "bulk:"}, "reason": "test"}
    made = site.visitor.call("POST", "/machines/activation/bulks", json=order)
    assert made.status_code == 201, made.text
    address = f"/bulks/{made.json()['id']}"
    eventually(lambda: _bulk(site, address)["checked"] == 12, "the dry run")
    eventually(lambda: site.visitor.call("POST", f"{address}/run").status_code in (200, 202), "it runs")
    eventually(lambda: _bulk(site, address)["tried"] == 12, "all were processed")
    assert _bulk(site, address)["outcomes"]["done"] == 12
    assert site.visitor.get(f"{reverse('signalbox:bulk', args=[made.json()['id']])}").status_code == 200


def test_a_map_reduce_run_ends(site: Site):
    run = MapReduce("totals", sum, sum, chunks=6, engine=site.engine)
    run.add_items(range(600))
    run.map()
    assert run.reduce(timeout=60) == sum(range(600))


def test_the_patterns_page_acts(site: Site):
    page = reverse("signalbox:patterns")
    act = reverse("signalbox:patterns-act", args=["throttle"])
    assert site.visitor.post(act, at=page).status_code == 302
    assert "Throttle: one call was made" in site.visitor.get(page).text


def test_metrics_and_the_http_twin_of_the_live_view_answer(site: Site):
    assert "signalbox_instances" in site.visitor.get("/metrics").text
    twin = site.visitor.get("/api/v1/live/?topic=overview").json()
    assert twin["type"] == "snapshot"
    assert "activation" in twin["data"]["machines"]


def test_nothing_went_wrong_on_the_way(site: Site):
    for name in ("serve", "worker"):
        assert "Traceback" not in site.log(name), site.log(name)


def _total(overview: dict, machine: str) -> int:
    return overview["machines"].get(machine, {}).get("total", 0)


def _sum(site: Site, machine: str, *states: str) -> int:
    counts = site.engine.counts(machine)
    return sum(counts[state] for state in states)


def _bulk(site: Site, address: str) -> dict:
    return site.visitor.call("GET", address).json()
