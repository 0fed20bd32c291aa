"""Locks: one at a time whoever races, an end, a fence that only grows, and clear words for who comes late."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from redis.lock import Lock as PlainLock

from machines.engine import Engine, EngineFault, EngineUnavailable
from machines.patterns import Holder, Locks, Lost, Overflow, Taken
from machines.patterns.locks import Lock
from tests.cases import for_each
from tests.engine.instances.racing import in_threads

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from machines.engine import Engine
from machines.patterns import Locks
url, prefix, path = sys.argv[1:4]
locks = Locks(Engine.from_url(url, prefix=prefix).client, prefix)
locks.peek("warm")
print("ready", flush=True)
sys.stdin.readline()
"""
COUNTER = (
    PROGRAM
    + """
fences = []
for _ in range(12):
    with locks.lock("counter").acquire(wait=60) as held:
        count = int(open(path).read())
        open(path, "w").write(str(count + 1))
        fences.append(held.fence)
print(*fences)
"""
)
LATE = (
    PROGRAM
    + """
import sqlite3
held = locks.lock("account", ttl=0.4, owner="the late one").acquire()
print(held.fence, flush=True)
sys.stdin.readline()
with sqlite3.connect(path) as sql:
    taken = sql.execute("UPDATE account SET by = 'late', fence = ? WHERE fence <= ?", (held.fence, held.fence)).rowcount
print("lost" if held.lost else "held", taken, held.release(), flush=True)
"""
)


@pytest.fixture
def locks(engine, prefix):
    return Locks(engine.client, prefix)


@pytest.fixture
def program(redis_url, prefix, tmp_path):
    """Starts programs that are ready to go, and sees to their end."""
    started = []

    def start(text, path=tmp_path):
        words = [sys.executable, "-c", text, redis_url, prefix, str(path)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)
    return found


@pytest.mark.faults
def test_threads_and_processes_that_race_take_turns_and_each_gets_a_larger_fence(locks, program, tmp_path):
    path = tmp_path / "counter"
    path.write_text("0")
    racers = [program(COUNTER, path) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    fences = []

    def count_up():
        for _ in range(6):
            with locks.lock("counter").acquire(wait=60) as held:
                count = int(path.read_text())
                path.write_text(str(count + 1))
                fences.append((count, held.fence))

    for racer in racers:
        go(racer)
    in_threads([count_up] * 2)
    there = [int(word) for racer in racers for word in racer.communicate(timeout=90)[0].split()]
    assert path.read_text() == "36"
    assert len({fence for _, fence in fences} | set(there)) == 36
    assert [fence for _, fence in fences] == sorted(fence for _, fence in fences)  # in the order they held it


@pytest.mark.faults
def test_a_holder_that_was_killed_is_followed_within_its_time(locks, program, tmp_path):
    path = tmp_path / "account.sqlite3"
    process = program(LATE, path)
    process.stdout.readline()
    go(process)
    fence = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    assert locks.peek("account").owner == "the late one"
    with locks.lock("account").acquire(wait=30) as held:
        assert held.fence > fence


@pytest.mark.faults
def test_a_holder_that_was_stopped_knows_it_lost_and_the_resource_refuses_its_late_write(locks, program, tmp_path):
    path = tmp_path / "account.sqlite3"
    with sqlite3.connect(path) as sql:
        sql.execute("CREATE TABLE account (by TEXT, fence INTEGER)")
        sql.execute("INSERT INTO account VALUES ('', 0)")
    process = program(LATE, path)
    process.stdout.readline()
    go(process)
    former = int(process.stdout.readline())
    process.send_signal(signal.SIGSTOP)
    with locks.lock("account").acquire(wait=30) as held:
        with sqlite3.connect(path) as sql:
            words = ("UPDATE account SET by = 'next', fence = ? WHERE fence <= ?", (held.fence, held.fence))
            assert [sql.execute(*words).rowcount for _ in range(2)] == [1, 1]
        process.send_signal(signal.SIGCONT)
        go(process)
        assert process.stdout.readline() == "lost 0 False\n"
        assert held.release() is True
    assert held.fence > former
    with sqlite3.connect(path) as sql:
        assert sql.execute("SELECT by FROM account").fetchall() == [("next",)]


def test_by_a_given_clock_it_is_held_renewed_and_over_to_the_ms(locks):
    lock = locks.lock("x", ttl=10, owner="web-1:42 report")
    held = lock.acquire(now=NOW)
    assert held.fence == NOW
    assert locks.peek("x", now=NOW + 4000) == Holder("web-1:42 report", NOW, NOW, 6.0)
    held.renew(now=NOW + 9999)
    other = locks.lock("x", ttl=10)
    with pytest.raises(Taken, match=r"held by web-1:42 report \(fence 18") as caught:
        other.acquire(now=NOW + 19_998)
    assert caught.value.retry_after == 0.001
    assert locks.peek("x", now=NOW + 19_999) is None
    second = other.acquire(now=NOW + 19_999)
    assert second.fence == NOW + 19_999
    with pytest.raises(Lost, match="held by"):
        held.renew(now=NOW + 20_000)
    assert held.lost
    assert held.release(now=NOW + 20_000) is False
    assert second.release(now=NOW + 20_000) is True
    assert second.release(now=NOW + 20_000) is False
    assert not second.lost
    assert locks.lock("x").acquire(now=NOW - 3_600_000).fence == second.fence + 1  # by a clock that was set back


def test_fences_go_on_growing_where_the_last_one_was_lost(locks, engine, prefix):
    first = locks.lock("x").acquire()
    for key in engine.client.scan_iter(match=f"{prefix}lock:*"):
        engine.client.delete(key)
    wait_for(lambda: _ms(engine) > first.fence)
    assert locks.lock("x").acquire().fence > first.fence


def _ms(engine):
    seconds, micros = engine.client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def test_a_taking_that_is_sent_again_is_one_and_nothing_is_kept_without_an_end(locks, engine, prefix):
    token = "0" * 32
    assert locks._take("x", token, 9000, "me", NOW) == locks._take("x", token, 9000, "me", NOW + 5) == NOW
    assert locks.peek("x", now=NOW + 9004).left == 0.001
    locks.lock("y", ttl=2).acquire()
    found = {key: engine.client.pttl(key) for key in engine.client.scan_iter(match=f"{prefix}lock:*")}
    assert all(left > 0 for left in found.values())
    assert 0 < found[f"{prefix}lock:{{y}}:holder"] <= 2000
    assert sorted(name for name, holder in locks.peeks(["x", "y", "z"]).items() if holder) == ["x", "y"]


def test_redis_pys_own_lock_and_this_one_keep_each_other_out(locks, engine, prefix):
    plain = PlainLock(engine.client, f"{prefix}lock:{{x}}:holder", timeout=9)
    assert plain.acquire(blocking=False)
    with pytest.raises(Taken, match="a lock of redis-py") as caught:
        locks.lock("x").acquire()
    assert 0 < caught.value.retry_after <= 9
    assert locks.peek("x").owner == ""
    plain.release()
    with locks.lock("x").acquire():
        assert not plain.acquire(blocking=False)
    forever = PlainLock(engine.client, f"{prefix}lock:{{x}}:holder")
    assert forever.acquire(blocking=False)
    with pytest.raises(Taken, match="without an end"):
        locks.lock("x").acquire(wait=0.01)
    assert locks.peek("x").left is None


def test_it_is_not_reentrant_and_says_so_at_once(locks):
    lock = locks.lock("x")
    with lock as held:
        with pytest.raises(Taken, match="not reentrant"):
            lock.acquire(wait=60)
        assert held.fence > 0
    with lock as again:
        assert again.fence > held.fence
    with pytest.raises(Lost, match="was released"):
        again.check()


def test_its_own_clock_takes_it_for_lost_before_the_server_gives_it_away(locks):
    at = [100.0]
    held = Lock(locks, "x", 10, "me", clock=lambda: at[0]).acquire()
    assert held.left == 9.0
    at[0] += 8.9
    held.check()
    held.renew()
    at[0] += 8.99
    assert not held.lost
    at[0] += 0.01
    assert held.lost
    assert locks.peek("x").owner == "me"
    with pytest.raises(Lost):
        held.renew()  # lost stays lost, whatever the server would say
    with pytest.raises(Lost, match="before its work was done"), held:
        pass
    assert locks.peek("x") is None


def test_a_thread_renews_it_and_tells_when_somebody_took_it_away(locks, engine, prefix):
    last, holder = (f"{prefix}lock:{{x}}:{part}" for part in ("last", "holder"))
    held = locks.lock("x", ttl=0.3).acquire()
    with held.renewing():
        first = int(engine.client.hget(last, "until"))
        wait_for(lambda: int(engine.client.hget(last, "until")) > first + 600)  # two whole times later
        assert held.wait(0.001)
        engine.client.set(holder, "somebody else")
        assert held.wait(60) is False
        assert held.lost
    with pytest.raises(Lost), held:
        pass
    assert engine.client.get(holder) == "somebody else"


def test_a_body_that_raises_releases_it_and_its_own_error_is_told(locks, engine, prefix):
    for spoil in ((), (f"{prefix}lock:{{x}}:holder",)):
        with pytest.raises(ZeroDivisionError), locks.lock("x"):
            1 / len([key for key in spoil if not engine.client.delete(key)])
    assert locks.peek("x") is None


def test_who_waits_gets_it_when_it_is_released_and_never_asks_twice_at_once(locks, engine):
    held = locks.lock("x", ttl=30).acquire()
    waiting = threading.Thread(target=lambda: locks.lock("x", owner="next").acquire(wait=60))
    waiting.start()
    before = engine.client.info("commandstats")["cmdstat_fcall"]["calls"]
    wait_for(lambda: engine.client.info("commandstats")["cmdstat_fcall"]["calls"] > before + 1)
    assert held.release()
    waiting.join(60)
    assert locks.peek("x").owner == "next"


def test_without_redis_it_is_lost_in_time_and_leaving_says_so(own_server, prefix):
    locks = Locks(Engine.from_url(own_server.url, prefix=prefix).client, prefix)
    held = locks.lock("x", ttl=1).acquire()
    with held.renewing():
        own_server.stop()
        assert held.wait(60) is False
    with pytest.raises(Lost), held:
        pass
    for ask in (held.release, partial(locks.peek, "x"), partial(locks.peeks, ["x"]), locks.lock("x").acquire):
        with pytest.raises(EngineUnavailable):
            ask()


def test_any_owner_that_people_can_read_is_shown_as_it_is(locks):
    for owner in ("a b:c{d}", "sÿß 🚦", "two\nlines", "nul\0", "x" * 150):
        with locks.lock("x", owner=owner):
            assert locks.peek("x").owner == owner


TOKEN = "a" * 32
RUBBISH = [
    ("sb_lock",), ("sb_lock", "short", "1", "me"), ("sb_lock", TOKEN, "0", "me"), ("sb_lock", TOKEN, "1e9", "me"),
    ("sb_lock", TOKEN, "nan", "me"), ("sb_lock", TOKEN, "1", ""), ("sb_lock", TOKEN, "1", "x" * 601),
    ("sb_lock", TOKEN, "1", "me", "soon"), ("sb_lock_renew", TOKEN), ("sb_lock_renew", "'; DROP", "1"),
    ("sb_lock_renew", TOKEN, "1", "-1"), ("sb_lock_release",), ("sb_lock_release", TOKEN, "1e15"),
    ("sb_lock_peek", "soon"),
]  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(locks, engine, prefix):
    locks.peek("x")

    @for_each("words", RUBBISH)
    def check(words):
        answer = engine.client.fcall(words[0], 1, f"{prefix}lock:{{x}}", *words[1:])
        assert answer[0] == "BADARG"
        assert list(engine.client.scan_iter(match=f"{prefix}lock:*")) == []

    check()


def test_a_foreign_key_or_figure_in_the_way_is_an_error_and_stays_as_it_is(locks, engine, prefix):
    holder, last = (f"{prefix}lock:{{x}}:{part}" for part in ("holder", "last"))
    for key, spoil in (
        (holder, lambda: engine.client.lpush(holder, "x")),
        (last, lambda: engine.client.set(last, "x")),
        (last, lambda: engine.client.hset(last, "fence", "many")),
        (last, lambda: engine.client.hset(last, "fence", str(2**53))),
    ):
        spoil()
        before = engine.client.dump(key)
        with pytest.raises(EngineFault):
            locks.lock("x").acquire()
        assert engine.client.dump(key) == before
        assert engine.client.exists(holder, last) == 1
        engine.client.delete(key)
    engine.client.hset(last, "fence", str(2**53 - 1))
    with pytest.raises(Overflow) as caught:
        locks.lock("x").acquire()
    assert caught.value.code == "SB483"
    assert engine.client.exists(holder) == 0
