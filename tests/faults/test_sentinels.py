"""The whole product on a server that Sentinels watch: the master dies while people look and workers work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.site import PAGES, Site
from tests.engine.connection import sentinels
from tests.engine.connection.sentinels import Watched
from tests.installation.processes import eventually

IDS = [f"F{number}" for number in range(12)]


@pytest.fixture
def watched(tmp_path: Path, program_of_this_run: str | None) -> Iterator[Watched]:
    with sentinels.running(tmp_path / "servers", program_of_this_run) as watched:
        yield watched


@pytest.fixture
def site(watched: Watched, tmp_path: Path) -> Iterator[Site]:
    """The site and a worker, with the Sentinels as their only address."""
    (tmp_path / "home").mkdir()
    site = Site(watched, tmp_path / "home")
    try:
        site.start()
        yield site
    finally:
        site.stop()


def test_the_site_the_worker_and_programs_go_on_with_the_new_master(watched: Watched, site: Site):
    engine, first = site.engine, watched.master()
    engine.create("delivery", "before")
    with site.live() as live:
        live.watch("machine:delivery")
        live.sees("machine:delivery", lambda value: value["total"] == 1, "a snapshot")
        with watched.client(first) as client:
            client.set("mark", 1)
            assert client.wait(1, 60_000) == 1, "the replica has the login and the machines"
        watched.kill(first)
        for id in IDS:
            engine.create("new_device", id, {"service": "Arte", "device": "F"}, key=id)
            engine.create("delivery", id, key=id)
        assert watched.master() != first
        live.sees("machine:delivery", lambda value: value["total"] == 1 + len(IDS), "each new instance")
    eventually(lambda: all(_moved_on(site, id) for id in IDS), "the worker goes on")
    eventually(lambda: site.visitor.get("/readyz").status_code == 200, "the site is ready")
    for page in PAGES:
        assert site.visitor.get(page).status_code == 200, "and knows who is logged in"
    for name in ("serve", "worker"):
        assert "Traceback" not in site.log(name), site.log(name)


def _moved_on(site: Site, id: str) -> bool:
    return site.engine.get("new_device", id).state not in ("start", "todo", "provision")
