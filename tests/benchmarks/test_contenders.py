"""The contenders do the same work, and the load driver's calls are all accepted."""

from __future__ import annotations

import pytest

from benchmarks import watch, workloads
from benchmarks.rounds import Measured, interleave
from benchmarks.stage import PREFIX, Stage

IDS = [f"ATV-{number}:NBCSports" for number in range(20)]
CYCLE = ("Active", "Suspended", "Waiting")
READS = {"hgetall", "time", "info", "config|resetstat", "fcall"}


@pytest.fixture
def stage(redis_url):
    stage = Stage(redis_url)
    stage.set_up()
    yield stage
    stage.clear()
    stage.engine.client.close()


def fire(stage, now):
    for id in IDS:
        stage.engine.fire("activation", id, "entitle", {"token": workloads.TOKEN}, now=now)


def by_hand(stage, now):
    for id in IDS:
        root = workloads.peer_root(PREFIX)
        stage.engine.client.execute_command("FCALL", "bench_entitle", 1, root, id, workloads.TOKEN, now)


def writes(stage, call, now):
    """Return how often each writing command ran; the pulse is left out, it depends on the moment."""
    stage.engine.client.config_resetstat()
    call(stage, now)
    seen = {
        name.removeprefix("cmdstat_"): row["calls"] for name, row in stage.engine.client.info("commandstats").items()
    }
    return {name: calls for name, calls in seen.items() if name not in READS | {"set"}}


@pytest.mark.parametrize("phase", range(3), ids=CYCLE)
def test_the_hand_written_peer_writes_what_fire_writes(stage, phase):
    stage.enrol(IDS)
    for now in workloads.PHASES[:phase]:
        fire(stage, now)
        by_hand(stage, now)
    now = workloads.PHASES[phase]
    ours, theirs = writes(stage, fire, now), writes(stage, by_hand, now)
    stamps = ours.pop("hset") - theirs.pop("hset")
    assert ours == theirs
    assert 0 <= stamps <= len(IDS), "beside the same writes, a stamp of the partition with a call at most"


def test_the_hand_written_peer_goes_through_the_same_states(stage):
    stage.enrol(IDS[:1])
    ours, theirs = stage.engine.keys.partition("activation"), workloads.peer_root(PREFIX)
    for now, state in zip(workloads.PHASES, CYCLE, strict=True):
        stage.engine.fire("activation", IDS[0], "entitle", {"token": workloads.TOKEN}, now=now)
        stage.engine.client.execute_command("FCALL", "bench_entitle", 1, theirs, IDS[0], workloads.TOKEN, now)
        mine = stage.engine.client.hgetall(ours.instance(IDS[0]))
        assert mine["_state"] == state
        assert stage.engine.client.hgetall(f"{theirs}:i:{IDS[0]}") == mine


@pytest.mark.faults
def test_every_call_of_the_load_driver_moves_an_instance(stage):
    with stage.driver() as driver:
        before = stage.moved()
        calls = sum(driver.run("fire", depth, 0.1).calls for depth in workloads.DEPTHS)
    assert calls > 0
    assert stage.moved() - before == calls


def test_the_compare_and_set_peer_follows_the_same_cycle(stage):
    key = f"{PREFIX}watch:one"
    watch.enrol(stage.engine.client, key)
    for now, state in zip(workloads.PHASES, CYCLE, strict=True):
        assert watch.entitle(stage.engine.client, key, workloads.TOKEN, now // 1000) == 1
        assert stage.engine.client.hget(key, "status") == state


def test_clearing_leaves_nothing_behind(stage):
    stage.enrol(IDS)
    stage.clear()
    assert list(stage.engine.client.scan_iter(match=f"{PREFIX}*")) == []


def test_contenders_take_turns_and_every_other_round_is_turned_round():
    order = []
    found = interleave(2, {name: lambda name=name: order.append(name) or 1.0 for name in "ab"})
    assert order == ["a", "b", "b", "a"]
    assert found["a"].rates == (1.0, 1.0)


def test_a_ratio_is_the_median_of_the_rounds_own_ratios():
    assert Measured("a", (2.0, 9.0, 4.0)).against(Measured("b", (1.0, 1.0, 4.0))) == 2.0
