"""Two servers with the same machine: one takes compiled steps where it can, the other interprets each step."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import redis

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.connection import library
from machines.engine.errors import DefinitionError

from .definitions import QUEUES, TEXTS, Writer

NOW = 1_700_000_000_000
PLACES = ["", ":leased", ":dead", ":handled"]
IDS = ["a", 'quo"te', "é\\n", "d" * 60]
ROOT = "t:{m:0}"
LOCALS = "has more than 200 local variables"
REGISTERS = "function or expression too complex"
LEVELS = "chunk has too many syntax levels"
LIMITS = (LOCALS, REGISTERS, LEVELS)
FIRST = int(os.environ.get("TWIN_FIRST", 1000))
SEEDS = range(FIRST, FIRST + int(os.environ.get("TWIN_MACHINES", 60)))


def patient(text: str) -> str:
    """The library with calls that never stop because they take long: both servers do all that is due."""
    assert "local SLICE_MS = 2 " in text
    return text.replace("local SLICE_MS = 2 ", "local SLICE_MS = 20000 ")


def interpreted_library() -> str:
    """The library without compiled steps."""
    text = patient(library.text())
    assert "local MAX_COMPILED = 2000" in text
    return text.replace("local MAX_COMPILED = 2000", "local MAX_COMPILED = 0", 1)


def counting_library() -> str:
    """The library with counts of the steps that ran compiled, and of those that did not."""
    text = patient(library.text()).replace("local CHARTS_FROM = 3", "local CHARTS_FROM = 1")
    written = "reason, history_payload, awaited, gone)\nif ok then return true end\n"
    assert text.count(written) == 1
    counted = "if ok and event:sub(1, 1) ~= '(' then redis.call('INCR', 'interpreted') end\n"
    text = text.replace(written, written.replace("if ok", counted + "if ok"))
    answered = "work_budget.stop()\nif ok then return reply end\nreturn nil\n"
    assert text.count(answered) == 1
    count = "if reply then redis.call('INCR', reply[1] == 'OK' and 'compiled' or 'refused') end return reply"
    return text.replace(answered, answered.replace("return reply", count))


class Twins:
    """Sends each call to both servers, and compares the answers."""

    def __init__(self, servers: tuple[Server, Server]) -> None:
        self.engines = [Engine.from_url(server.url, prefix="t:") for server in servers]
        self.clients = [redis.Redis.from_url(server.url) for server in servers]
        self.log, self._read = servers[0].log, 0
        self.load()

    def load(self, text: str | None = None, other: str | None = None) -> None:
        """Load the libraries anew, so that nothing is compiled: ``text``, and ``other`` without compiled steps."""
        texts = (text or counting_library(), other or interpreted_library())
        for client, library_ in zip(self.clients, texts, strict=True):
            client.function_load(library_, replace=True)

    def publish(self, definition: dict[str, Any]) -> bool:
        """Publish on one empty server, and copy its keys to the other. False for a definition that is refused."""
        for client in self.clients:
            for key in client.scan_iter("t:*", count=1000):
                client.delete(key)
        ours, other = self.clients
        try:
            self.engines[0].publish(definition)
        except DefinitionError:
            return False
        for key in ours.scan_iter("t:*", count=1000):
            if content := ours.dump(key):  # else it has expired
                other.restore(key, 0, content)
        return True

    def call(self, name: str, *words: Any) -> Any:
        """Return the answer, which both servers gave."""
        ours, other = [plain(answer) for answer in self.both("FCALL", name, 1, ROOT, *words)]
        assert ours == other, f"{name} {words}\n{ours}\n{other}"
        return ours

    def same_text(self, name: str, *words: Any) -> Any:
        """Return the answer, which both servers gave to the letter."""
        ours, other = self.both("FCALL", name, 1, ROOT, *words)
        assert ours == other, f"{name} {words}\n{ours}\n{other}"
        return ours

    def both(self, *words: Any) -> list[Any]:
        return [answer(client, words) for client in self.clients]

    def compare(self) -> None:
        """Every key of both servers holds the same."""
        ours, other = (contents(client) for client in self.clients)
        for key in ours.keys() | other.keys():
            assert ours.get(key) == other.get(key), f"{key!r}\n{ours.get(key)}\n{other.get(key)}"

    def count_compiled(self) -> int:
        """Return how many steps ran compiled since the last call."""
        return int(self.clients[0].getdel("compiled") or 0)

    def count_interpreted(self) -> int:
        """Return how many steps the first server interpreted since the last call."""
        return int(self.clients[0].getdel("interpreted") or 0)

    def count_refused(self) -> int:
        """Return how many refusals by guards were answered compiled since the last call."""
        return int(self.clients[0].getdel("refused") or 0)

    def read_failures(self) -> list[str]:
        """Return why steps could not be compiled since the last call, from the server's log."""
        with self.log.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._read)
            found = [line.partition(" is left to the interpreter: ")[2] for line in file]
            self._read = file.tell()
        return [why.strip() for why in found if why]

    def close(self) -> None:
        for client in [*self.clients, *(engine.client for engine in self.engines)]:
            client.close()


def answer(client: redis.Redis, words: tuple[Any, ...]) -> Any:
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return str(error)


def plain(reply: Any) -> Any:
    """An answer with its JSON decoded: the order of names in an object means nothing."""
    if isinstance(reply, list):
        return [plain(item) for item in reply]
    return decoded(reply) if isinstance(reply, bytes) else reply


def decoded(item: bytes) -> Any:
    try:
        found = json.loads(item) if item[:1] == b"{" else item
        if isinstance(found, dict):
            found.pop("work", None)  # also counts what is compiled at its first use
            if "microsteps" in (found.get("error") or "") or found.get("exhausted"):
                found["error"] = found["exhausted"] = "too much work"  # which of the two comes first, depends on that
        return found
    except ValueError:
        return ("not JSON", item)


READ = {
    b"hash": lambda client, key: client.hgetall(key),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"set": lambda client, key: client.smembers(key),
    b"string": lambda client, key: client.get(key),
    b"stream": lambda client, key: [fields for _, fields in client.xrange(key)],
}


def contents(client: redis.Redis) -> dict[bytes, Any]:
    found = {}
    for key in client.keys(f"{ROOT}:*"):
        if key.endswith(b":pulse"):
            continue
        value = READ[client.type(key)](client, key)
        if key.endswith(b":meta"):
            value.pop(b"touched", None)
        if key.startswith(f"{ROOT}:def:".encode()):
            value = {name: text for name, text in value.items() if name not in (b"secret", b"at")}
        if b":k:" in key:
            value = sorted(value)  # the stored answer holds JSON, whose names may be in another order
        found[key] = value
    return found


@contextmanager
def running(folder: Path, program: str | None) -> Iterator[Twins]:
    """Run both servers."""
    with Server(folder / "ours", program=program, persistent=False) as ours:  # noqa: SIM117
        with Server(folder / "other", program=program, persistent=False) as other:
            twins = Twins((ours, other))
            try:
                yield twins
            finally:
                twins.close()


def play_many(twins: Twins, kind: type[Writer], seeds: range) -> None:
    """Play generated machines: nearly all of them run compiled, and nearly all steps of the sound ones."""
    steps: Counter[tuple[str, bool]] = Counter()
    machines: Counter[bool] = Counter()
    twins.read_failures()
    for seed in seeds:
        writer = kind(seed)
        play(twins, writer)
        compiled = twins.count_compiled()
        machines[compiled > 0] += 1
        steps[writer.sort, True] += compiled
        steps[writer.sort, False] += twins.count_interpreted()
    failures = Counter(limit for why in twins.read_failures() for limit in LIMITS if limit in why)
    found = f"{len(seeds)} machines, {machines[True]} ran compiled; steps by sort, and whether compiled: {dict(steps)}"
    logging.getLogger(__name__).info("%s: %s; failures to compile: %s", kind.__module__, found, dict(failures))
    assert machines[True] > 0.85 * len(seeds)  # the others are odd, or beyond a limit of Lua
    assert steps["sound", True] > 7 * steps["sound", False]
    assert twins.count_refused() > len(seeds)


def play(twins: Twins, writer: Writer, calls: int = 40) -> None:
    """Play one generated machine on both."""
    pick = writer.random
    assert twins.publish(writer.definition())
    for number, id in enumerate(IDS):
        twins.call("sb_create", id, "{}", "", "", "", "", NOW + number)
    now, held = NOW + 1000, HeldJobs(twins, writer)
    for _ in range(calls):
        now += pick.choice([0, 1, 999, 86_400_000])
        id, event = pick.choice(IDS), writer.event()
        if writer.odd and pick.random() < 0.05:
            damage(twins, pick, id)
        if pick.random() < writer.ticks:
            twins.call("sb_tick", now, 100)
            continue
        if pick.random() < writer.jobs:
            held.work(now)
            continue
        expect = pick.choice([*[""] * 10, "3", "x"])
        key = pick.choice(["", "", "", "k1", "k2"])
        actor, reason = pick.choice(["", "ann", 'bo"b']), pick.choice(["", "", 'why "not"'])
        permit = pick.choice(["", "", '{"groups":["a"]}', '{"groups":null}'])
        returning = pick.choice(["", "", "version"])
        if pick.random() < 0.15:
            twins.call("sb_explain", id, event, writer.payload(), now)
        twins.call("sb_fire", id, event, writer.payload(), expect, key, actor, reason, now, permit, returning)
    twins.compare()


class HeldJobs:
    """The jobs that a worker took and has not ended, of any call before."""

    def __init__(self, twins: Twins, writer: Writer) -> None:
        self._twins, self._writer, self._pick = twins, writer, writer.random
        self._held: list[tuple[Any, Any]] = []

    def work(self, now: int) -> None:
        """Take jobs and end some of those held."""
        pick, queue = self._pick, self._pick.choice(QUEUES)
        reply = self._twins.call("sb_take", queue, "w", pick.choice([1, 2, 9]), "", now, f"n{now}")
        if isinstance(reply, list):  # else a key of the queue is foreign
            self._held += [(reply[at], reply[at + 2]) for at in range(3, len(reply), 6)]
        pick.shuffle(self._held)
        ended, self._held = self._held[1:], self._held[:1]
        if pick.random() < 0.25 and ended:
            self._fail(now, *ended.pop())
        if ended:
            self._complete(now, ended)

    def _fail(self, now: int, job: Any, token: Any) -> None:
        error, again = self._pick.choice(TEXTS), self._pick.choice("001")
        self._twins.call("sb_fail", job, token, error, "Broken", "", again, now, 1)

    def _complete(self, now: int, ended: list[tuple[Any, Any]]) -> None:
        words: list[Any] = []
        for job, token in ended:
            words += [job, self._pick.choice([token] * 9 + ["other"]), self._writer.result()]
        self._twins.call("sb_complete", now, self._pick.choice(["", "short"]), *words)


def damage(twins: Twins, pick: Random, id: str) -> None:
    """Write what another program may have written."""
    key, place = f"{ROOT}:i:{id}", pick.choice(PLACES)
    words = pick.choice(
        [
            ("HSET", key, pick.choice(["n", "x"]), pick.choice(["12\n", "abc", '1"', "1e3", " 4", "0x10", ""])),
            ("HSET", key, "s", pick.choice(TEXTS)),
            ("HSET", key, "ok", pick.choice(["true", "yes", '"'])),
            ("HSET", key, "_created", "17\n"),
            ("HSET", key, "foreign", "x"),
            ("HDEL", key, pick.choice(["n", "s", "foreign", "_created"])),
            ("SET", f"{ROOT}:h:{id}", "foreign"),
            ("DEL", f"{ROOT}:h:{id}"),
            ("SET", f"{ROOT}:flow", "foreign"),
            ("DEL", f"{ROOT}:flow"),
            ("SET", f"{ROOT}:by:n", "foreign"),
            ("DEL", f"{ROOT}:by:n"),
            ("HSET", key, "_jobs", pick.choice(["0-1", "0-3", "0-2 0-4", ""])),
            ("HDEL", key, "_jobs"),
            ("SET", f"{ROOT}:q:q{place}", "foreign"),
            ("DEL", f"{ROOT}:q:q{place}"),
            ("SET", f"{ROOT}:job:0-{pick.randint(1, 9)}", "foreign"),
            ("HSET", f"{ROOT}:meta", "jobs", "foreign"),
            ("HSET", f"{ROOT}:meta", "jobs", "70"),
        ]
    )
    twins.both(*words)
