from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from dashboard.live.hub.hub import Hub
from dashboard.live.topics import Topic, parse
from machines.engine import Engine, Fire, WorkerInfo
from machines.engine.keys import Keys
from tests.live.conftest import PATIENCE, Watcher, eventually

Watch = Callable[..., Watcher]


def hammer(engine: Engine, steps: int) -> None:
    """The instance goes round and round, one call after the other."""
    for number in range(steps):
        engine.fire("gate", "north", "shut" if number % 2 else "open")


async def test_a_step_shows_by_its_hint(gate: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
    gate.fire("gate", "north", "open")
    value = await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    assert value["flow"] == {"1:t1": 1}
    assert watcher.screen.kinds("machine:gate")[-1] == "delta"


@pytest.mark.parametrize("steps", [1, 3, 2001])
async def test_the_last_step_is_never_lost(gate: Engine, watch: Watch, steps: int) -> None:
    """No reconcile comes to the rescue here."""
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate")
    await asyncio.to_thread(hammer, gate, steps)
    live = gate.live("gate")
    await watcher.sees("machine:gate", counts=live.counts, flow=live.flow)


async def test_the_last_step_is_not_lost_however_long_the_run(gate: Engine, watch: Watch) -> None:
    """Ends at all points of the pulse's 50 ms."""
    watcher = watch("machine:gate")
    for steps in range(20, 400, 19):
        await asyncio.to_thread(hammer, gate, 2 * steps)
        await watcher.sees("machine:gate", flow=gate.live("gate").flow)


async def test_a_fast_machine_makes_few_frames(gate: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate")
    calls = [Fire("gate", "north", event) for event in ("open", "shut")] * 500
    with gate.client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.psubscribe(f"__keyspace@*__:{gate.keys.partition('gate').pulse}")
        heard.get_message(timeout=1)
        for _ in range(5):
            await asyncio.to_thread(gate.fire_many, calls)
        await watcher.sees("machine:gate", flow=gate.live("gate").flow)
        pulses = sum(message["data"] == b"set" or message["data"] == "set" for message in iter(heard.get_message, None))
    assert 0 < pulses < len(calls), "a pulse stands for all steps of its 50 ms"
    assert len(watcher.screen.kinds("machine:gate")) <= 2 + 2 * pulses, "each is read at once, and for its silent steps"


@pytest.mark.parametrize(
    ("count", "took", "rest"),
    [(1, 0.001, 0.05), (1, 0.01, 0.1), (1, 0.5, 0.3), (200, 0.05, 0.3), (2000, 0.2, 2.0), (2000, 9.0, 3.0)],
)
async def test_after_a_read_it_rests(make_hub, count: int, took: float, rest: float) -> None:
    """Ten times as long as it waited for the answer, within bounds."""
    assert make_hub()._compute_rest(count, took) == pytest.approx(rest)


async def test_the_more_sockets_it_has_the_less_often_it_reads(make_hub) -> None:
    hub = make_hub(frames=40)
    outboxes = [hub.enter() for _ in range(20)]
    assert hub._compute_rest(1, 0.001) == pytest.approx(0.5)
    for outbox in outboxes:
        await hub.exit(outbox)


async def test_an_instance_shows_with_its_data(gate: Engine, watch: Watch) -> None:
    watcher = watch("instance:gate/north", "instance:gate/south")
    await watcher.sees("instance:gate/south", gone=True)
    await watcher.sees("instance:gate/north", state="Shut")
    gate.fire("gate", "north", "open")
    await watcher.sees("instance:gate/north", state="Open", data={"passed": 1, "note": None, "text": ""}, revision=2)
    gate.create("gate", "south")
    await watcher.sees("instance:gate/south", state="Shut")
    gate.delete("gate", "south")
    await watcher.sees("instance:gate/south", gone=True)


async def test_an_instance_is_shown_as_the_engine_gives_it(gate: Engine, watch: Watch) -> None:
    gate.fire("gate", "north", "write", {"text": "é \u2028 \"'</script>"})
    watcher = watch("instance:gate/north")
    value = await watcher.sees("instance:gate/north", revision=2)
    assert {**value, "outcome": None} == {**gate.get("gate", "north").as_dict(), "outcome": None}


async def test_queue_depths_change_with_every_move_of_a_job(gate: Engine, watch: Watch) -> None:
    watcher = watch("queue:shift/crew", "queues", "overview")
    await watcher.sees("queue:shift/crew", ready=0, leased=0)
    gate.fire("shift", "north", "begin")
    await watcher.sees("queue:shift/crew", ready=1, leased=0)
    (job,) = gate.take("shift", "crew", "w1")
    await watcher.sees("queue:shift/crew", ready=0, leased=1)
    await watcher.until(lambda screen: screen.values["queues"]["queues"]["shift/crew"]["leased"] == 1)
    gate.complete(job)
    await watcher.sees("queue:shift/crew", ready=0, leased=0)
    value = await watcher.sees("overview")
    assert value["machines"]["shift"]["counts"] == {"Rest": 1, "Work": 0}


async def test_workers_come_and_go_with_the_reconcile(gate: Engine, watch: Watch) -> None:
    now = gate.live("gate").now
    watcher = watch("workers", "overview", reconcile=0.05)
    await watcher.sees("workers", workers={})
    gate.beat(WorkerInfo("w1", "host", 7, ["crew"], in_hand=0, started=now, seen=now))
    await watcher.until(lambda screen: screen.values["workers"]["workers"].get("w1", {}).get("pid") == 7)
    await watcher.sees("overview", workers=1)
    gate.leave("w1")
    await watcher.sees("workers", workers={})


async def test_a_machine_published_while_watched_appears(engine: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate", "overview", reconcile=0.05)
    await watcher.sees("machine:gate", gone=True)
    engine.publish({"id": "gate", "initial": "A", "states": {"A": {"on": {"b": "B"}}, "B": {}}})
    await watcher.sees("machine:gate", counts={"A": 0, "B": 0})
    await watcher.until(lambda screen: "gate" in screen.values["overview"]["machines"])


async def test_all_partitions_of_a_machine_are_one(redis_url: str, prefix: str, watch: Watch) -> None:
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish({"id": "gate", "initial": "A", "states": {"A": {"on": {"b": "B"}}, "B": {}}})
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate", counts={"A": 0, "B": 0})
    for number in range(20):
        engine.create("gate", f"i{number}")
    await watcher.sees("machine:gate", counts={"A": 20, "B": 0})
    for number in range(20):
        engine.fire("gate", f"i{number}", "b")
    await watcher.sees("machine:gate", counts={"A": 0, "B": 20}, flow={"1:t1": 20})
    engine.client.close()


async def test_only_watched_machines_are_listened_to(gate: Engine, watch: Watch, prefix: str) -> None:
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate")
    assert channels(gate, prefix) == [f"__keyspace@0__:{prefix}{{gate:0}}:pulse"]
    watcher.watch("overview")
    await watcher.sees("overview")
    await eventually(lambda: len(channels(gate, prefix)) == 2)
    for topic in ("overview", "machine"):
        watcher.hub.unsubscribe(watcher.outbox, Topic(topic, "gate" if topic == "machine" else ""))
    watcher.watch("workers")
    await watcher.sees("workers")
    await eventually(lambda: channels(gate, prefix) == [])


def channels(engine: Engine, prefix: str) -> list[str]:
    return [name for name in engine.client.pubsub_channels() if prefix in name]


async def test_two_watchers_of_one_hub_cost_one_subscription_and_see_the_same(gate: Engine, watch: Watch) -> None:
    first = watch("machine:gate")
    await first.sees("machine:gate")
    second = watch("machine:gate", hub=first.hub)
    await second.sees("machine:gate")
    gate.fire("gate", "north", "open")
    assert await first.sees("machine:gate", flow={"1:t1": 1}) == await second.sees("machine:gate", flow={"1:t1": 1})
    assert first.screen.marks == second.screen.marks


async def test_the_hub_ends_with_its_last_socket_and_starts_again_as_another_epoch(gate: Engine, watch: Watch) -> None:
    first = watch("machine:gate")
    await first.sees("machine:gate")
    await first.leave()
    await eventually(lambda: gate.client.client_list(_type="pubsub") == [])
    second = watch("machine:gate", hub=first.hub)
    await second.sees("machine:gate")
    assert second.screen.marks["machine:gate"][0] != first.screen.marks["machine:gate"][0]


async def test_the_hub_ends_at_whatever_moment_its_last_socket_leaves(gate: Engine, make_hub) -> None:
    """Also while redis-py sends, which loses a cancellation in Python 3.11."""
    moments = random.Random(7)
    for _ in range(80):
        hub = make_hub()
        outbox = hub.enter()
        hub.subscribe(outbox, parse("machine:gate"))
        await asyncio.sleep(moments.uniform(0, 0.03))
        hub.unsubscribe(outbox, parse("machine:gate"))
        async with asyncio.timeout(PATIENCE):
            await hub.exit(outbox)


async def test_flags_that_are_set_stay_set(gate: Engine, watch: Watch) -> None:
    gate.client.config_set("notify-keyspace-events", "Exg")
    watcher = watch("machine:gate")
    await watcher.sees("machine:gate")
    assert set(gate.client.config_get("notify-keyspace-events")["notify-keyspace-events"]) == set("ExgK$")


async def test_flags_that_someone_takes_away_are_set_again(gate: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate", reconcile=0.1)
    await watcher.sees("machine:gate")
    gate.client.config_set("notify-keyspace-events", "")
    await eventually(lambda: gate.client.config_get("notify-keyspace-events")["notify-keyspace-events"] != "")


async def test_without_config_set_the_reconcile_shows_changes(gate: Engine, watch: Watch, make_hub, redis_url) -> None:
    """The account may do all but CONFIG, and nobody else has switched notifications on."""
    gate.client.config_set("notify-keyspace-events", "")
    gate.client.execute_command("ACL SETUSER limited on >secret ~* &* +@all -config")
    hub: Hub = make_hub(redis_url.replace("unix://", "unix://limited:secret@"), reconcile_without_hints=0.05)
    try:
        watcher = watch("machine:gate", hub=hub)
        await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
        gate.fire("gate", "north", "open")
        await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    finally:
        await watcher.leave()
        gate.client.execute_command("ACL DELUSER limited")


async def test_a_lost_hint_is_healed_by_the_reconcile(gate: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate", reconcile=0.2)
    await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
    gate.client.set(Keys(gate.keys.prefix).partition("gate").pulse, 1, px=2000)  # in its shadow nothing rings
    await asyncio.sleep(0.1)
    gate.fire("gate", "north", "open")
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})


async def test_the_library_is_loaded_where_it_is_missing(gate: Engine, watch: Watch) -> None:
    watcher = watch("machine:gate", reconcile=0.1)
    await watcher.sees("machine:gate")
    gate.client.function_flush()
    watcher.watch("instance:gate/north")
    await watcher.sees("instance:gate/north", state="Shut")
    assert "stale" not in watcher.screen.states


async def test_a_foreign_key_in_the_way_costs_one_machine_and_not_the_rest(gate: Engine, watch: Watch) -> None:
    gate.client.set(gate.keys.partition("gate").flow, "not a hash")
    watcher = watch("machine:gate", "machine:shift", "instance:gate/odd")
    gate.client.hset(gate.keys.partition("gate").instance("odd"), mapping={"who": "knows"})
    await watcher.sees("machine:gate", gone=True)
    await watcher.sees("machine:shift", counts={"Rest": 1, "Work": 0})
    await watcher.sees("instance:gate/odd", gone=True)
    assert "stale" not in watcher.screen.states


async def test_rows_that_another_hand_wrote_cost_nobody_the_live_view(gate: Engine, watch: Watch) -> None:
    gate.client.hset(gate.keys.machines, "junk", "many")
    gate.client.hset(gate.keys.worker("odd"), "id", "not JSON")
    now = gate.live("gate").now
    gate.client.zadd(gate.keys.workers, {"odd": now})
    gate.beat(WorkerInfo("w1", "host", 7, ["crew"], in_hand=0, started=now, seen=now))
    watcher = watch("workers", "machine:gate")
    await watcher.until(lambda screen: list(screen.values.get("workers", {}).get("workers", {})) == ["w1"])
    await watcher.sees("machine:gate", machine="gate")
    assert "stale" not in watcher.screen.states
