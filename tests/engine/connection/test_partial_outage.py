"""One shard down is one shard down: reads return what the others say, and name what is missing."""

import contextlib

import pytest

from machines.engine import Engine, EngineUnavailable, Instance
from machines.engine.connection.cluster_routing import find_slot
from machines.engine.jobs.records import WorkerInfo
from tests.clusters import Cluster
from tests.engine.builders import errand, publish

from .clusters import eventually

PARTITIONS = 12
IDS = [f"i{number:02}" for number in range(48)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, program_of_this_run):
    """Three primaries without replicas, which go on while one of them is away."""
    folder = tmp_path_factory.mktemp("bare-cluster")
    with Cluster(folder, program=program_of_this_run, replicas=0, persistent=True) as cluster:
        yield cluster


@pytest.fixture
def engine(cluster):
    engine = Engine.from_url(cluster.url, partitions=PARTITIONS, socket_timeout=2.0)
    yield engine
    engine.client.close()


def row(worker):
    return WorkerInfo(worker, "host", 1, ["errand/work"], in_hand=0, started=0, seen=0)


def test_reads_go_on_with_what_the_others_say(engine, cluster):
    publish(engine, errand(), *IDS)
    for id in IDS:
        engine.fire("errand", id, "start")
    jobs = engine.take("errand", "work", "w", count=24)
    for number in range(6):
        engine.beat(row(f"w{number}"))
    engine.machines()
    engine.workers()
    lost = cluster.owner_of(find_slot(engine.keys.machines))
    away = {p.root for p in engine._catalog.partitions("errand") if is_on(cluster, lost, p.root)}
    there = [id for id in IDS if engine._catalog.partition("errand", id).root not in away]
    assert 0 < len(there) < len(IDS)
    lost.kill()
    try:
        assert_partial(engine, jobs, there, away)
    finally:
        lost.revive()
    cluster.wait_settled()
    eventually(lambda: not missing(engine))
    assert sum(engine.counts("errand").values()) == len(IDS)
    assert len(engine.workers()) == 6
    assert engine.fire_many([("errand", id, "abandon") for id in IDS])[-1].state == "Idle"


def is_on(cluster, node, root):
    return cluster.owner_of(find_slot(root)) is node


def missing(engine):
    with contextlib.suppress(EngineUnavailable):
        return engine.live("errand").missing or engine.workers().missing
    return True


def assert_partial(engine, jobs, there, away):
    for live in (engine.live("errand"), engine.survey().lives["errand"]):
        assert (set(live.missing), live.counts["Busy"]) == (away, len(there))
    assert (engine.counts("errand").missing, engine.counts("errand")["Busy"]) == (live.missing, len(there))
    assert set(engine.queues("errand").missing) == away
    assert set(engine.stats("errand")["work"].missing) == set(engine.stats("errand").missing) == away
    assert (engine.machines(), engine.versions("errand")) == ({"errand": 1}, [1])
    assert engine.definition("errand") == errand()
    assert ("errand", "work") in engine.queue_names(["errand"])
    check_pages(engine, there, away)
    found = engine.get_many("errand", IDS)
    assert [one.id for one in found if isinstance(one, Instance)] == there
    with pytest.raises(EngineUnavailable):
        engine.get("errand", next(id for id in IDS if id not in there))
    assert engine.extend(jobs, 60_000) == [True] * len(jobs)
    listed = engine.jobs("errand", "work", place="leased", limit=100)
    assert 0 < len(listed) < len(jobs)
    assert set(listed.missing) == away
    workers = engine.workers()
    assert len(workers) + len([key for key in workers.missing if "worker:" in key]) == 6
    engine.ping()


def check_pages(engine, there, away):
    ids, cursor = [], None
    while True:
        page = engine.find("errand", limit=7, cursor=cursor)
        assert set(page.missing) == away
        ids += [instance.id for instance in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert sorted(ids) == there
    tally = engine.tally("errand")
    assert (tally.total, tally.complete, set(tally.missing)) == (len(there), False, away)
    tally = engine.tally("errand", version=1)
    assert (tally.total, tally.complete, set(tally.missing)) == (len(there), False, away)
    with pytest.raises(EngineUnavailable):
        engine.find("errand", partial=False)


def test_where_nothing_answers_reads_say_so(engine, cluster):
    engine.publish(errand())
    engine.live("errand")
    for node in cluster.nodes:
        node.kill()
    try:
        for read in (engine.live, engine.counts, engine.find, engine.tally, engine.stats, engine.get_many):
            with pytest.raises(EngineUnavailable):
                read("errand", IDS) if read == engine.get_many else read("errand")
        for read in (engine.survey, engine.workers, engine.ping):
            with pytest.raises(EngineUnavailable):
                read()
    finally:
        for node in cluster.nodes:
            node.revive()
    cluster.wait_settled()
    eventually(lambda: not missing(engine))
