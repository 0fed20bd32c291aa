"""Each shard is killed in turn, without a replica that could take over, and every address is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import dashboard.api.v1  # noqa: F401  adds the operations
from tests.clusters import Cluster
from tests.installation.processes import eventually

from .matrix import list_addresses, list_left_out, read_table, store_table, write_table
from .site import Site

pytestmark = pytest.mark.cluster

FURNISH = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
import django
django.setup()
from django.contrib.auth import get_user_model
from machines.people import tokens
from machines.connections import get_engine
from machines.models import Token
from tests.pages.conftest import TOKEN, furnish
engine = get_engine()
engine.create("activation", "ATV-123:NBCSports")
engine.fire("activation", "ATV-123:NBCSports", "activate", TOKEN)
furnish(engine)
tokens.make(get_user_model().objects.get(), "a program", ("view",))
Token.objects.update(handle="0123456789ab")  # a shard of its sessions that is the same in each run
"""
ABOUT_ONE = {
    "bulk", "bulk-results", "cancel", "delete", "edit", "force", "history-csv", "history-json", "instance",
    "reset", "resume", "retry", "schedule", "schedule-change", "skip", "sm-key", "suspend",
    "admin instance", "API getBulk", "API getHistory", "API getInstance", "API getKey",
    "API getSchedule", "API getProblems", "API getWaits", "API listBulkResults", "API listNextRuns",
    "API listRuns", "API listSessions",
}  # fmt: skip
"""Addresses of one thing, which one node stores: there is nothing else to show."""


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory, program_of_this_run: str | None) -> Iterator[Site]:
    """The site with something at each address, on three primaries without a replica."""
    folder = tmp_path_factory.mktemp("lonely")
    with Cluster(folder, program=program_of_this_run, persistent=True, replicas=0) as cluster:
        site = Site(cluster, tmp_path_factory.mktemp("site"))
        try:
            site.start()
            site.run_code(FURNISH)
            yield site
        finally:
            site.stop()


def test_every_page_survives_any_shard_or_names_the_node_that_has_its_only_subject(lonely: Site):
    cluster, addresses = lonely.cluster, list_addresses()
    before = {name: lonely.visitor.get(address).status_code for name, address in addresses.items()}
    addresses = {name: address for name, address in addresses.items() if before[name] == 200}
    assert set(addresses) >= ABOUT_ONE
    shards, wrong = {}, []
    for slots in lonely.list_shards():
        node = cluster.owner_of(int(slots.partition("-")[0]))
        node.kill()
        try:
            eventually(lambda s=slots: lonely.visitor.get("/healthz").json().get("missing") == [s], "the shard is away")
            shards[slots] = answers = {}
            for name, address in addresses.items():
                answer = lonely.visitor.get(address)
                answers[name] = answer.status_code, answer.text
                said = list_left_out(answer.text) or answer.status_code == 503
                if answer.status_code not in (200, 503) or (answer.status_code == 503 and name not in ABOUT_ONE):
                    wrong.append((slots, name, answer.status_code))
                elif said and node.address not in answer.text:
                    wrong.append((slots, name, "does not name the node"))
        finally:
            node.revive()
            cluster.wait_settled()
            eventually(lambda: lonely.visitor.get("/healthz").json()["status"] == "ok", "the shard is back")
    assert wrong == []
    table = write_table(shards)
    if "SIGNALBOX_WRITE_TABLES" in os.environ:
        store_table(table)
    assert read_table() == table, "SIGNALBOX_WRITE_TABLES=1 writes the table into docs/durability.md"
