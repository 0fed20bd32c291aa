"""Primaries die and change while people look and workers work: the site goes on."""

from __future__ import annotations

import threading

import pytest

from tests.installation.processes import eventually

from .site import PAGES, Site

pytestmark = pytest.mark.cluster


def test_a_killed_primary_is_replaced_and_work_goes_on(site: Site):
    engine, cluster = site.engine, site.cluster
    owner = cluster.owner_of(0)
    with site.live() as live:
        live.watch("machine:delivery")
        before = live.sees("machine:delivery", lambda value: True, "a snapshot")["total"]
        owner.kill()
        for n in range(12):
            engine.create("new_device", f"F{n}", {"service": "Arte", "device": "F"}, key=f"F{n}")
            engine.create("delivery", f"f{n}", key=f"f{n}")
        cluster.wait_settled()
        live.sees("machine:delivery", lambda value: value["total"] == before + 12, "each new instance")
    eventually(lambda: all(_moved_on(site, f"F{n}") for n in range(12)), "the worker goes on with all partitions")
    owner.revive()
    cluster.wait_settled()


def test_failovers_of_all_nodes_break_no_page(site: Site):
    broken: list[tuple[str, int]] = []
    looks: list[int] = []  # one for each round over all pages
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            for page in PAGES:
                status = site.visitor.get(page).status_code
                if status != 200:
                    broken.append((page, status))
            looks.append(1)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for primary in site.cluster.primary_nodes():
            site.cluster.fail_over(primary)
            seen = len(looks)
            eventually(lambda count=seen: len(looks) > count + 1, "all pages were opened after it")
    finally:
        stop.set()
        looking.join()
    assert broken == []
    assert len(site.cluster.primary_nodes()) == 3


def test_nothing_went_wrong_on_the_way(site: Site):
    for name in ("serve", "worker"):
        assert "Traceback" not in site.log(name), site.log(name)


def _moved_on(site: Site, id: str) -> bool:
    return site.engine.get("new_device", id).state not in ("start", "todo", "provision")
