"""Letting go, archive and erasure where the partitions of a machine live on several servers."""

from __future__ import annotations

import pytest

from machines.connections import use_engine
from machines.retention import figures
from machines.retention.duty import RetentionDuty
from machines.retention.erasure import erase
from tests.engine.connection import clusters

from .conftest import archived, parcel, run

IDS = [f"p{number:02}" for number in range(30)]


@pytest.fixture
def engine(nodes, prefix, settings):
    with clusters.engine_on(nodes, prefix, 6) as engine:
        yield engine


def test_instances_of_all_nodes_go_and_one_is_erased(engine, share, transactional_db):
    engine.publish(parcel(retain={"most": 5}))
    for number, id in enumerate(IDS):
        engine.create("parcel", id, {"email": f"{id}@example.org"}, now=number + 1)
        engine.fire("parcel", id, "drop", now=number + 1)
    with use_engine(engine):
        assert figures.read_kept_figures("parcel").finished == 30
    run(RetentionDuty(engine, share=share))
    assert archived() == IDS[:25]
    assert sorted(instance.id for instance in engine.find("parcel")) == IDS[25:]
    assert engine.retirement().count("parcel") == 5
    report = erase(engine, "parcel", where=("email", "p27@example.org"), actor="ann", reason="a request")
    assert (report.instances, report.left) == (["p27"], [])
