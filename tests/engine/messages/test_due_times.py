"""What the server remembers of what is due next, whom it wakes for it, and that its memory is not trusted too long."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from machines.conf.server import Server
from machines.engine import Engine, NotPermitted
from tests.engine.bells import Bells, wait_on_lists
from tests.engine.builders import NOW, door, errand, machine, publish
from tests.engine.dumps import unchanged

from .mailing import noter, post, teller

KICK = {"A": {"on": {f"in{ms}": f"W{ms}" for ms in (500, 1000, 2000, 3000, 60_000)}}}
WAITS = {f"W{ms}": {"after": {f"{ms}ms": "B"}, "on": {"back": "A"}} for ms in (500, 1000, 2000, 3000, 60_000)}


class Told(NamedTuple):
    """What a tick answers of one partition."""

    fired: int
    postponed: int
    jobs: int
    timer: str  # only told where the keys were read
    due: str
    mail: int


def kick(name: str = "kick") -> dict[str, Any]:
    """``in500`` arms a timer of 500 ms, and so on."""
    return machine(name, KICK | WAITS | {"B": {}})


def ticked(engine: Engine, *names: str, now: Any = "", look: str = "") -> list[Told]:
    roots = [engine.keys.partition(name).root for name in names]
    reply = engine.client.fcall("sb_tick", len(roots), *roots, now, 200, look)
    assert reply[0] == "OK", reply
    return [Told(*told[:6]) for told in reply[2:]]


def tick(engine: Engine, name: str = "kick", **options: Any) -> Told:
    return ticked(engine, name, **options)[0]


def rings(engine: Engine, name: str = "kick") -> int:
    """How often the bell has rung for something due since the last time this was asked; 0 the first time."""
    heard = vars(engine).setdefault("heard_in_test", {})
    if name not in heard:
        heard[name] = Bells(engine, name)
    return sum(message.startswith("due ") for message in heard[name].heard())


def server_now(engine: Engine) -> int:
    seconds, micros = engine.client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def ahead(engine: Engine) -> int:
    """A minute from now: what a step of then makes due is not due for a tick of now, however slow the machine is."""
    return server_now(engine) + 60_000


@pytest.fixture
def kicked(engine):
    """A machine at which a tick has looked, and its instances a, b, c and d."""
    publish(engine, kick(), *"abcd")
    engine.tick("kick")
    rings(engine)
    yield engine
    for bells in engine.heard_in_test.values():
        bells.close()


def commands(engine: Engine, call) -> dict[str, int]:
    """How often ``call`` has the server run each command."""

    def counted():
        return {name: row["calls"] for name, row in engine.client.info("commandstats").items()}

    before = counted()
    call()
    after = counted()
    names = {name for name in after if name != "cmdstat_info"}
    return {
        name.removeprefix("cmdstat_"): after[name] - before.get(name, 0)
        for name in names
        if after[name] != before.get(name, 0)
    }


# What a tick costs, and what it does


def test_a_tick_of_many_quiet_partitions_is_one_call_that_asks_the_time_and_no_more(engine):
    names = [publish(engine, door() | {"id": f"door{n}"}, "x") for n in range(5)]
    names.append(publish(engine, kick(), "a"))
    engine.fire("kick", "a", "in60000")
    engine.tick()
    engine.drive(names, look=False)
    assert commands(engine, lambda: engine.drive(names, look=False)) == {"fcall": 1, "time": 1}


def test_a_look_at_a_partition_where_nothing_waits_costs_two_commands_however_many_queues_there_are(engine):
    publish(engine, door(), "x")
    for n in range(30):
        engine.complete(_worked(engine, f"q{n}"))
    assert commands(engine, lambda: tick(engine, "door", look="look")) == {
        "fcall": 1, "time": 1, "smembers": 1, "exists": 1
    }  # fmt: skip


def _worked(engine: Engine, queue: str):
    engine.enqueue("door", "work", queue=queue)
    return engine.take("door", queue, "w")[0]


def test_a_tick_fires_timers_takes_back_leases_and_wakes_delayed_jobs(engine):
    publish(engine, kick(), "a", now=NOW)
    engine.fire("kick", "a", "in1000", now=NOW)
    engine.enqueue("kick", "work", now=NOW)
    engine.take("kick", "work", "w", lease=500, now=NOW)
    engine.enqueue("kick", "work", delay=1000, now=NOW)
    assert tick(engine, now=NOW + 999)[:5] == (0, 0, 0, str(NOW + 1000), str(NOW + 1000))
    assert tick(engine, now=NOW + 1000)[:5] == (1, 0, 2, "", "")
    assert engine.queues("kick")["work"] == {"ready": 2, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    assert engine.get("kick", "a").state == "B"


def test_a_lease_that_ended_is_left_alone_for_a_moment(engine):
    """A worker whose job ran past its timeout is about to say so itself, with better words."""
    publish(engine, errand(timeout="1s", retry={"attempts": 2}), "x", now=NOW)
    engine.fire("errand", "x", "start", now=NOW)
    (job,) = engine.take("errand", "work", "w", now=NOW)
    assert tick(engine, "errand", now=NOW + 1499)[2:5] == (0, "", str(NOW + 1500))
    assert engine.fail(job, "it took longer than 1 s", kind="Timeout", now=NOW + 1499) == "delayed"


def test_what_is_due_next_is_the_earliest_of_all_kinds(engine):
    publish(engine, kick(), "a", now=NOW)
    engine.fire("kick", "a", "in3000", now=NOW)
    assert tick(engine, now=NOW).due == str(NOW + 3000)
    engine.enqueue("kick", "work", delay=2000, now=NOW)
    assert tick(engine, now=NOW).due == str(NOW + 2000)
    engine.enqueue("kick", "work", now=NOW)
    engine.take("kick", "work", "w", lease=1000, now=NOW)
    assert tick(engine, now=NOW)[3:5] == (str(NOW + 3000), str(NOW + 1500))


def test_a_partition_in_which_something_is_wrong_keeps_no_other_waiting(engine):
    for name in ("bad", "kick"):
        publish(engine, kick(name), "a", now=NOW)
        engine.fire(name, "a", "in1000", now=NOW)
    engine.enqueue("bad", "work", delay=500, now=NOW)
    engine.client.set(engine.keys.partition("bad").late, "foreign")
    driven = engine.drive(["bad", "kick"], now=NOW + 1000)
    assert engine.get("kick", "a").state == "B"
    assert driven.moved == 2, "the timer of the one, the job of the other"
    assert ["bad:0" in str(fault) for fault in driven.faults] == [True]
    assert driven.wait == 1000, "it is looked at again soon"


# Ringing


def test_what_is_due_earlier_than_was_told_rings_and_what_is_due_later_does_not(kicked):
    found, now = [], ahead(kicked)
    for id, event in [("a", "in2000"), ("b", "in3000"), ("c", "in1000"), ("d", "in2000")]:
        kicked.fire("kick", id, event, now=now)
        found.append(rings(kicked))
    assert found == [1, 0, 1, 0]


def test_what_is_far_away_rings_nothing_and_is_known_to_the_next_tick(kicked):
    """Whoever ticks does so every five seconds."""
    kicked.fire("kick", "a", "in60000")
    assert rings(kicked) == 0
    assert tick(kicked)[3:5] == ("", str(kicked.get("kick", "a").timers[0].due)), "from memory"


def test_a_timer_that_is_disarmed_is_looked_for_once(kicked):
    kicked.fire("kick", "a", "in1000", now=ahead(kicked))
    kicked.fire("kick", "a", "back")
    soon = int(tick(kicked).due)
    assert tick(kicked, now=soon).due == ""


@pytest.mark.parametrize(("lease", "rung"), [(1000, 1), (30_000, 0)])
def test_a_lease_that_ends_soon_rings(kicked, lease, rung):
    now = ahead(kicked)
    kicked.enqueue("kick", "work")
    (job,) = kicked.take("kick", "work", "w", lease=lease, now=now)
    assert rings(kicked) == rung
    assert tick(kicked).due == str(job.lease_until)
    kicked.extend(job, 500, now=now)
    assert rings(kicked) == 1, "it ends earlier now"
    assert tick(kicked).due == str(kicked.job("kick", job.id).lease_until)


def test_a_job_that_waits_a_moment_rings(kicked):
    kicked.enqueue("kick", "work", delay=600_000)
    assert rings(kicked) == 0
    now = ahead(kicked)
    later = kicked.enqueue("kick", "work", delay=3000, now=now)
    assert (rings(kicked), tick(kicked).due) == (1, str(kicked.job("kick", later.id).due))
    kicked.enqueue("kick", "other")
    (job,) = kicked.take("kick", "other", "w", lease=60_000, now=now)
    kicked.fail(job, "no", delay=200, now=now)
    assert (rings(kicked), tick(kicked).due) == (1, str(kicked.job("kick", job.id).due))


def test_messages_ring_and_are_there_for_a_tick_if_nobody_delivers_them(engine):
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    engine.tick()
    rings(engine, "teller")
    before = server_now(engine)
    post(engine, "x", 1)
    post(engine, "x", 2)
    told = tick(engine, "teller")
    assert rings(engine, "teller") == 1
    late = server_now(engine) >= before + 250
    assert told.mail == 0 or late, "whoever posted them has a moment to deliver them"
    assert before < int(told.due) <= server_now(engine) + 250
    deadline = time.monotonic() + 60
    while engine.drive(["noter", "teller"], look=False).moved == 0:
        assert time.monotonic() < deadline, "the messages are delivered"
        time.sleep(0.02)
    assert engine.get("noter", "x").data["got"] == [1, 2]


def test_a_step_that_fails_rings_nothing_and_the_next_one_is_heard_all_the_same(kicked):
    history = kicked.keys.partition("kick").history("a")
    kicked.client.delete(history)
    kicked.client.set(history, "foreign")
    with unchanged(kicked), pytest.raises(Exception, match="WRONGTYPE"):
        kicked.fire("kick", "a", "in1000")
    kicked.fire("kick", "b", "in2000")
    assert rings(kicked) == 1


def test_what_another_look_finds_earlier_rings(kicked):
    """Behind the back of the library, as after a restore."""
    due = server_now(kicked) + 4500
    kicked.client.zadd(kicked.keys.partition("kick").timers, {"a1a1:a": due})
    assert (tick(kicked).due, rings(kicked)) == ("", 0)
    assert (tick(kicked, look="look").due, rings(kicked)) == (str(due), 1)


def test_what_lies_in_the_way_of_the_bell_is_no_reason_to_fail(kicked):
    wait_on_lists(kicked, "kick")
    kicked.client.set(kicked.keys.partition("kick").clock, "foreign")
    kicked.fire("kick", "a", "in1000")
    assert kicked.get("kick", "a").state == "W1000"


def test_a_bell_says_when_something_is_due(kicked):
    bells = Bells(kicked, "kick")
    kicked.fire("kick", "a", "in2000")
    assert bells.heard() == [f"due {kicked.get('kick', 'a').timers[0].due}"]
    bells.close()


def test_a_list_is_rung_for_those_who_wait_on_it_and_for_no_others(kicked):
    clock, now = kicked.keys.partition("kick").clock, ahead(kicked)
    kicked.fire("kick", "a", "in3000", now=now)
    assert kicked.client.llen(clock) == 0
    wait_on_lists(kicked, "kick")
    kicked.fire("kick", "b", "in2000", now=now)
    assert kicked.client.llen(clock) == 1
    kicked.client.delete(clock)
    kicked.tick("kick")
    kicked.fire("kick", "c", "in1000")
    assert kicked.client.llen(clock) == 0


def test_a_bell_nobody_hears_does_not_grow(kicked):
    wait_on_lists(kicked, "kick")
    for event in ("in3000", "in2000", "in1000", "in500"):
        kicked.fire("kick", "a", event)
        kicked.fire("kick", "a", "back")
    assert kicked.client.llen(kicked.keys.partition("kick").clock) == 1


# Memory


def test_after_the_library_was_loaded_anew_a_tick_looks(kicked):
    kicked.fire("kick", "a", "in60000")
    kicked.load_library()
    due = str(kicked.get("kick", "a").timers[0].due)
    assert tick(kicked)[3:5] == (due, due)
    assert tick(kicked)[3:5] == ("", due)


def test_between_a_load_and_the_first_look_what_is_earlier_still_rings(kicked):
    kicked.load_library()
    kicked.fire("kick", "a", "in2000")
    kicked.fire("kick", "b", "in3000")
    assert rings(kicked) == 1
    assert tick(kicked).timer != "", "it looked: there may be others from before"


def test_after_a_restart_of_the_server_nothing_is_missed(tmp_path, program_of_this_run):
    with Server(tmp_path / "server", program=program_of_this_run) as server:
        engine = Engine.from_url(server.url)
        publish(engine, kick(), "a")
        engine.fire("kick", "a", "in500")
        engine.enqueue("kick", "work", delay=500)
        due = engine.get("kick", "a").timers[0].due
        server.stop()
        server.start()
        assert tick(engine).timer in (str(due), "")
        while engine.get("kick", "a").state != "B" or engine.queues("kick")["work"]["ready"] == 0:
            engine.drive(["kick"], look=False)
            assert server_now(engine) < due + 30_000
        engine.client.close()


def test_a_clock_that_was_set_back_knows_nothing(kicked):
    kicked.fire("kick", "a", "in60000")
    later = server_now(kicked) + 50_000
    assert tick(kicked, now=later).timer != ""
    assert tick(kicked).timer != "", "it is earlier than when the last one looked"
    assert tick(kicked).timer == ""


def test_a_sweep_puts_a_memory_right_that_was_wrong(kicked):
    partition = kicked.keys.partition("kick")
    due = server_now(kicked) + 4500
    kicked.client.zadd(partition.timers, {"a1a1:a": due})
    kicked.sweep("kick")
    assert (rings(kicked), tick(kicked).due) == (1, str(due))


def test_a_time_that_is_given_is_looked_for_whatever_is_remembered(kicked):
    kicked.fire("kick", "a", "in60000", now=NOW)
    assert tick(kicked, now=NOW + 59_999).fired == 0
    assert tick(kicked, now=NOW + 60_000).fired == 1


def test_more_partitions_than_are_remembered_are_all_driven(engine):
    """A memory that is full is emptied."""
    publish(engine, kick(), "a")
    engine.fire("kick", "a", "in500")
    root = engine.keys.partition("kick").root
    strangers = [f"{root}x{n}" for n in range(10_000)]
    engine.client.fcall("sb_tick", len(strangers), *strangers, "", 1, "")
    due = engine.get("kick", "a").timers[0].due
    while engine.get("kick", "a").state != "B":
        engine.drive(["kick"], look=False)
        assert server_now(engine) < due + 30_000


def test_a_job_that_cannot_be_taken_back_keeps_those_behind_it_from_nothing(engine):
    work = errand(retry={"attempts": 1})
    publish(engine, work, *"ab")
    for id in "ab":
        engine.fire("errand", id, "start", now=NOW)
    stuck, other = engine.take("errand", "work", "w", count=2, lease=1000, now=NOW)
    history = engine.keys.partition("errand").history(stuck.instance)
    engine.client.delete(history)
    engine.client.set(history, "foreign")
    told = tick(engine, "errand", now=NOW + 1500)
    while told.due == str(NOW + 1500):  # a slow call leaves some to the next
        told = tick(engine, "errand", now=NOW + 1500)
    assert told[3:5] == ("", str(NOW + 7000))
    assert engine.job("errand", other.id).place == "handled"
    engine.client.delete(history)
    assert tick(engine, "errand", now=NOW + 7000).jobs == 1
    assert engine.get("errand", stuck.instance).state == "Failed"


def test_a_tick_without_a_partition_or_with_a_limit_that_is_none_is_refused(engine):
    publish(engine, door())
    root = engine.keys.partition("door").root
    assert engine.client.fcall("sb_tick", 0, "", 200, "")[0] == "BADARG"
    assert engine.client.fcall("sb_tick", 1, root, "", 0, "")[0] == "BADARG"
    assert engine.client.fcall("sb_tick", 1, root, "soon", 200, "")[0] == "BADARG"


def test_an_account_that_may_not_use_all_machines_does_what_is_due_in_the_others(own_server):
    owner = Engine.from_url(own_server.url)
    for name in ("kick", "secret"):
        publish(owner, kick(name), "a", now=NOW)
        owner.fire(name, "a", "in1000", now=NOW)
    owner.client.acl_setuser(
        "guest", enabled=True, nopass=True, categories=["+@all"], keys=["sb:{kick:0}*", "sb:machines"]
    )
    guest = Engine.from_url(own_server.url, username="guest", password="any")
    roots = [guest.keys.partition(name) for name in ("kick", "secret")]
    driven = guest._delivery.drive(roots, str(NOW + 1000))
    assert owner.get("kick", "a").state == "B"
    assert owner.get("secret", "a").state == "W1000"
    assert driven.faults
    assert all(isinstance(fault, NotPermitted) for fault in driven.faults)
    guest.client.close()
    owner.client.close()
