"""A dry run over partitions on several servers, and one that has a server stop in its middle."""

from __future__ import annotations

import secrets

import pytest

from machines.engine import Engine, errors
from machines.engine.versions.fleet_walk import FleetWalk
from tests.engine.connection import clusters

from ..letters import letters, to_second


@pytest.fixture
def spread(nodes):
    engine = Engine.from_url(clusters.url_of(nodes), prefix=f"t{secrets.token_hex(4)}:", partitions=6)
    yield engine
    engine.client.close()


def test_all_partitions_are_walked(spread):
    ids = letters(spread, 60)
    for id in ids[:7]:
        spread.fire("letter", id, "keep")
    plan = to_second(spread)
    run = spread.dry_run(plan)
    assert run.total == sum(each.count for each in run.classes) == 60
    assert {one.id for one in run.refused} == set(ids[:7])
    moved = spread.migrate(plan, actor="ann", reason="a test")
    assert (moved.moved, len(moved.refused)) == (53, 7)


def test_a_partition_whose_server_is_gone_ends_it_by_its_name(tmp_path, program_of_this_run):
    with clusters.running(tmp_path, program_of_this_run) as nodes:
        engine = Engine.from_url(clusters.url_of(nodes), prefix="gone:", partitions=6)
        letters(engine, 60)
        walk = FleetWalk(engine._caller, engine._catalog, to_second(engine), 1)
        pages = walk.pages()
        next(pages)
        for node in nodes:
            node.kill()
        with pytest.raises(errors.EngineUnavailable, match="letter:0") as caught:
            list(pages)
        assert (caught.value.code, caught.value.retry_safe) == ("SB621", True)
        engine.client.close()
