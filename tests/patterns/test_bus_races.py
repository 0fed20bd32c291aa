"""Readers that are killed, groups of different speed, a stream that is always full: nothing is lost, and nothing
that was acknowledged is done twice."""

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from machines.patterns import Full, Stream

ROOT = Path(__file__).resolve().parents[2]
# Argv: URL, prefix, name, how many messages to acknowledge before it stops answering. Prints what it handled, what it
# acknowledged.
READER = """
import sys, time
from machines.engine import Engine
from machines.patterns import Stream
url, prefix, name, most = *sys.argv[1:4], int(sys.argv[4])
stream = Stream(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix, most=1000)
done, idle = 0, 0
while idle < 3:
    found = stream.read("g", name, count=7, block=0.2, idle=0.3)
    idle = 0 if found or any(lag.pending for lag in stream.lag()) else idle + 1
    for message in found:
        print("did", message.body, flush=True)
        if done == most:
            print("holds", flush=True)
            time.sleep(60)
        stream.ack("g", message.id)
        print("acked", message.body, flush=True)
        done += 1
"""


@pytest.fixture
def start(redis_url, prefix):
    running = []

    def started(name, most):
        words = [sys.executable, "-c", READER, redis_url, prefix, name, str(most)]
        running.append(subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def test_readers_that_are_killed_between_reading_and_acknowledging_lose_nothing(engine, prefix, start):
    stream = Stream(engine.client, "race", prefix=prefix, most=1000)
    stream.group("g")
    for n in range(200):
        stream.append(n)
    doomed = [start(f"doomed{n}", 10 + 7 * n) for n in range(2)]
    survivors = [start(f"survivor{n}", 10**6) for n in range(2)]
    said = []
    for process in doomed:
        for line in process.stdout:
            said.append(line)
            if line == "holds\n":
                break
        process.kill()
        said += process.stdout.read().splitlines(keepends=True)
    said += [line for process in survivors for line in process.communicate(timeout=90)[0].splitlines(keepends=True)]
    did = Counter(int(line.split()[1]) for line in said if line.startswith("did"))
    acked = Counter(int(line.split()[1]) for line in said if line.startswith("acked"))
    assert set(did) == set(acked) == set(range(200))
    assert acked == Counter(range(200)), "what was acknowledged came again"
    (lag,) = stream.lag()
    assert (lag.unread, lag.pending, lag.oldest, lag.lost) == (0, 0, "", 0)


MOST = 25
EACH = 300


class Crowd:
    """Two writers of one stream, readers of different speed, and one who watches all the time."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.got = {"quick": [], "slow": []}
        self.wrong = []
        self.over = threading.Event()

    def write(self, who: str) -> None:
        for n in range(EACH):
            while not self.over.is_set():
                try:
                    self.stream.append([who, n])
                    break
                except Full:
                    self.over.wait(0.001)

    def read(self, group: str, count: int) -> None:
        got = self.got[group]
        while len(got) < 2 * EACH and not self.over.is_set():
            found = self.stream.read(group, group, count=count, block=0.05)
            got += [message.body for message in found]
            for message in reversed(found):  # out of order: the oldest is needed the longest
                self.stream.ack(group, message.id)

    def watch(self, client) -> None:
        key = self.stream.keys.log
        while not self.over.is_set():
            if len(self.stream) > MOST:
                self.wrong.append("too long")
            for row in self.stream.lag():
                held = not row.pending or client.xrange(key, row.oldest, row.oldest)
                if row.lost or (not held and client.xpending_range(key, row.group, row.oldest, row.oldest, 1)):
                    self.wrong.append(row)

    def run(self, client) -> None:
        calls = [(self.write, "a"), (self.write, "b"), (self.read, "quick", 20), (self.read, "slow", 3)]
        threads = [threading.Thread(target=call, args=args) for call, *args in calls]
        watcher = threading.Thread(target=self.watch, args=[client])
        for thread in (watcher, *threads):
            thread.start()
        for thread in threads:
            thread.join(60)
        self.over.set()
        watcher.join()


def test_a_stream_that_is_always_full_drops_nothing_that_a_group_needs(engine, prefix):
    stream = Stream(engine.client, "full", prefix=prefix, most=MOST)
    for group in ("quick", "slow"):
        stream.group(group)
    crowd = Crowd(stream)
    crowd.run(engine.client)
    assert crowd.wrong == []
    for group, got in crowd.got.items():
        for who in "ab":
            assert [n for name, n in got if name == who] == list(range(EACH)), group
    stream.group("late")
    late = [message.body for message in stream.read("late", "l")]
    assert 0 < len(late) <= MOST
    assert late == crowd.got["quick"][-len(late) :]
